# SPDX-License-Identifier: GPL-2.0
"""What ./on-real-hardware refuses, and what it leaves when a step fails.

tests/linux/test_package.py carries out the steps on a Debian system.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from firsttouch.places import REPOSITORY


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """The script in a checkout of its own, with a command that must not be called."""
    copy = Path(shutil.copy(REPOSITORY / "on-real-hardware", tmp_path))
    _replace(copy, "firsttouch", "exit 1")
    return copy


def _replace(script: Path, command: str, does: str) -> None:
    """Have `script` find a command that does what lines of shell say."""
    file = script.parent / ".venv/bin" / command
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{does}\n")
    file.chmod(0o755)


@pytest.fixture
def debian(script: Path) -> Path:
    """The script on a Debian for arm64, whose apt fails and whose dpkg writes `purged`."""
    _replace(script, "sudo", 'exec "$@"')
    _replace(script, "dpkg-deb", "echo linux-image-6.12.5-first-touch-arm64")
    _replace(script, "dpkg", '[ "$1" = --print-architecture ] && echo arm64 || echo "$@" >purged')
    _replace(script, "apt-get", "exit 100")
    _replace(script, "firsttouch", "mkdir -p out/hardware/before")
    return script


def _run(script: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [script, *words], cwd=script.parent, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "give install, compare or undo"),
        (("remove",), "give install, compare or undo"),
        (("compare",), "nothing was installed: run ./on-real-hardware install"),
        (("undo",), "nothing was installed: run ./on-real-hardware install"),
        # The one on x86-64, the other on arm64.
        (("install", "none.deb"), ("does not run Debian for arm64", "none.deb is no package")),
    ],
)
def test_what_cannot_be_done_is_refused(
    script: Path, words: tuple[str, ...], message: str | tuple[str, ...]
) -> None:
    done = subprocess.run([script, *words], cwd="/", capture_output=True, text=True, check=False)
    assert done.returncode == 2
    possible = (message,) if isinstance(message, str) else message
    assert any(sentence in done.stderr for sentence in possible), done.stderr


def test_the_kernel_that_was_installed_must_run(script: Path) -> None:
    results = script.parent / "out/hardware"
    results.mkdir(parents=True)
    (results / "package").write_text("linux-image-6.12.5-first-touch-arm64\n")
    done = subprocess.run([script, "compare"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "choose 6.12.5-first-touch-arm64 in the boot menu" in done.stderr


def test_a_missing_command_is_named(script: Path) -> None:
    shutil.rmtree(script.parent / ".venv")
    done = subprocess.run(
        [script, "undo"], env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "firsttouch is missing: run ./setup" in done.stderr


def test_an_installation_that_failed_can_be_undone(debian: Path) -> None:
    done = _run(debian, "install", "some.deb")
    assert done.returncode == 2
    assert "apt did not install linux-image-6.12.5-first-touch-arm64" in done.stderr
    done = _run(debian, "undo")
    assert done.returncode == 0, done.stderr
    purged = debian.parent / "purged"
    assert purged.read_text() == "--purge linux-image-6.12.5-first-touch-arm64\n"
    # The surveys stay.
    assert [file.name for file in (debian.parent / "out/hardware").iterdir()] == ["before"]


_ENTRIES = """\
menuentry 'Debian GNU/Linux' --class debian $menuentry_id_option 'gnulinux-simple-07a1' {
submenu 'Advanced options for Debian GNU/Linux' $menuentry_id_option 'gnulinux-advanced-07a1' {
	menuentry 'Linux KERNEL' --class debian $menuentry_id_option 'gnulinux-KERNEL-advanced-07a1' {
	menuentry 'Linux KERNEL (recovery mode)' $menuentry_id_option 'gnulinux-KERNEL-recovery-07a1' {
"""


@pytest.fixture
def grub(debian: Path) -> Path:
    """The folder of a script on a Debian that boots by GRUB; `default` is what the script sets.

    `once` is what boots next. The menu has the kernels in the file `kernels`.
    """
    folder = debian.parent
    (folder / "kernels").write_text("6.12.3-arm64\n")
    (folder / "entries").write_text(_ENTRIES)
    _replace(debian, "uname", "cat running")
    (folder / "running").write_text("6.12.3-arm64\n")
    _replace(debian, "update-grub", f"cp {folder}/kernels {folder}/menu")
    _replace(
        debian,
        "cat",
        f"[ $1 != /boot/grub/grub.cfg ] || exec sed 's/^/s,KERNEL,/; s/$/,/' {folder}/menu |\n"
        f'  while read -r change; do sed "$change"g {folder}/entries; done\n'
        '[ $1 = /boot/grub/grub.cfg ] || exec /bin/cat "$@"',
    )
    _replace(debian, "mkdir", '[ "$2" = /etc/default/grub.d ] || exec /bin/mkdir "$@"')
    _replace(debian, "tee", f"/bin/cat >{folder}/default")
    _replace(debian, "rm", f'case "$2" in /etc/*) exec /bin/rm -f {folder}/default; esac\n'
                           '/bin/rm "$@"')  # fmt: skip
    _replace(debian, "grub-reboot", f'echo "$1" >{folder}/once')
    changed = "6.12.5-first-touch-arm64"
    _replace(debian, "apt-get", f"echo {changed} >>{folder}/kernels; update-grub")
    return folder


def test_grub_boots_the_changed_kernel_once(grub: Path) -> None:
    done = _run(grub / "on-real-hardware", "install", "some.deb")
    assert done.returncode == 0, done.stderr
    default = "GRUB_DEFAULT='gnulinux-advanced-07a1>gnulinux-6.12.3-arm64-advanced-07a1'\n"
    assert (grub / "default").read_text() == default
    once = "gnulinux-advanced-07a1>gnulinux-6.12.5-first-touch-arm64-advanced-07a1\n"
    assert (grub / "once").read_text() == once


def test_the_kernel_that_runs_is_not_removed(grub: Path) -> None:
    script = grub / "on-real-hardware"
    assert _run(script, "install", "some.deb").returncode == 0
    (grub / "running").write_text("6.12.5-first-touch-arm64\n")
    done = _run(script, "undo")
    assert done.returncode == 2
    assert "the changed kernel runs" in done.stderr and "reboot" in done.stderr
    assert not (grub / "purged").exists()
    (grub / "running").write_text("6.12.3-arm64\n")
    done = _run(script, "undo")
    assert done.returncode == 0, done.stderr
    assert (grub / "purged").exists() and not (grub / "default").exists()


def test_a_build_that_fails_names_what_installs_its_tools(debian: Path) -> None:
    _replace(debian, "firsttouch", "echo 'dh_builddeb is missing' >&2; exit 2")
    done = _run(debian, "install")
    assert done.returncode == 2
    assert "dh_builddeb is missing" in done.stderr
    assert "if tools are missing, run ./setup package" in done.stderr
    assert not (debian.parent / "out").exists()
