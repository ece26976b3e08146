# SPDX-License-Identifier: GPL-2.0
"""`firsttouch doctor` and ./setup: a tool counts, whichever package it is from."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from firsttouch.files import REPOSITORY

# A host that has everything except what a test takes away.
_PACKAGES = """\
make : make                  # drives everything
qemu-system-arm : qemu-here  # runs the guests
gcc : gcc:libc.a             # a library that a compiler finds
tidy : tidy-here             # tests: validates the report
slurm : slurm-here           # regress: a cluster
"""
_TOOLS = ("make", "qemu-here", "tidy-here", "slurm-here")
_USED_BY_SETUP = ("sh", "dirname", "uname", "grep", "python3", "env", "sed")


@pytest.fixture
def laboratory(tmp_path: Path) -> Path:
    """A copy of the package with a short list, as pip would install it."""
    package = tmp_path / "lib/firsttouch"
    shutil.copytree(
        REPOSITORY / "firsttouch", package, ignore=shutil.ignore_patterns("__pycache__", "data")
    )
    data = package / "data"
    for name in ("arms", "experiments", "machines"):
        shutil.copytree(REPOSITORY / name, data / name)
    shutil.copy(REPOSITORY / "setup", data)
    (data / "packages.list").write_text(_PACKAGES)
    return tmp_path


def _tools(folder: Path, names: Iterable[str], links: Iterable[str] = (), **scripts: str) -> Path:
    """Return a PATH with tools of these names, of the host, and scripts; dpkg has no package."""
    tools = folder / "bin"
    tools.mkdir()
    for name in (*_USED_BY_SETUP, *links):
        path = shutil.which(name)
        assert path, f"{name} is missing"
        (tools / name).symlink_to(path)
    fixed = {"gcc": f"echo {tools}/libc.a", "apt-get": "exit 1", "dpkg-query": "exit 1"}
    for name, script in {**fixed, **dict.fromkeys(names, "exit 0"), **scripts}.items():
        (tools / name).write_text(f"#!/bin/sh\n{script}\n")
        (tools / name).chmod(0o755)
    (tools / "libc.a").touch()
    return tools


def _setup(
    folder: Path, tools: Path, *words: str, before: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*before, "/bin/sh", "./setup", *words], cwd=folder, env={"PATH": str(tools)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def _doctor(laboratory: Path, tools: Path) -> subprocess.CompletedProcess[str]:
    packages = os.pathsep.join([str(laboratory / "lib"), *sys.path])
    return subprocess.run(
        [sys.executable, "-m", "firsttouch", "doctor"],
        cwd=laboratory, env={"PATH": str(tools), "PYTHONPATH": packages, "HOME": str(laboratory)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_what_only_tests_lack_is_no_failure(laboratory: Path) -> None:
    done = _doctor(laboratory, _tools(laboratory, _TOOLS[:2]))
    assert (done.returncode, done.stderr) == (0, "")
    *lines, answer, remedy = done.stdout.splitlines()
    missing = [line.split()[1] for line in lines if line.startswith("MISSING")]
    assert missing == ["tidy", "slurm"]
    assert remedy.endswith("run `apt-get install --no-install-recommends tidy slurm`.")
    assert answer == "The laboratory works here."


@pytest.mark.parametrize(
    ("gone", "sentence"),
    [
        # The laboratory works without what only tests need.
        (["libc.a"], "install --no-install-recommends qemu-system-arm gcc`."),
        # Off Debian
        (["dpkg-query", "apt-get"], "install the packages that provide qemu-here, or"),
    ],
)
def test_what_the_laboratory_lacks_is_installed_by_one_command(
    laboratory: Path, gone: list[str], sentence: str
) -> None:
    tools = _tools(laboratory, _TOOLS[:1])
    for name in gone:
        (tools / name).unlink()
    done = _doctor(laboratory, tools)
    assert done.returncode == 2
    (said,) = done.stderr.splitlines()
    assert sentence in said


def test_a_qemu_without_plugins_is_named(laboratory: Path) -> None:
    tools = _tools(laboratory, _TOOLS)
    qemu = tools / "qemu-system-aarch64"
    qemu.write_text("#!/bin/sh\necho '-nographic      no window'\n")
    qemu.chmod(0o755)
    done = _doctor(laboratory, tools)
    assert done.returncode == 2
    (sentence,) = done.stderr.splitlines()
    assert f"{qemu} was built without plugins" in sentence
    qemu.write_text("#!/bin/sh\necho '-plugin [file=]<file>'\n")
    assert _doctor(laboratory, tools).returncode == 0


@pytest.mark.parametrize(
    ("words", "missing", "lock"),
    [
        ("lab", "qemu-system-arm", "requirements-user.lock"),
        ("", "qemu-system-arm tidy", "requirements.lock"),
        ("regress", "qemu-system-arm tidy slurm", "requirements.lock"),
    ],
)
def test_off_debian_setup_says_what_is_missing_and_makes_the_environment(
    tmp_path: Path, words: str, missing: str, lock: str
) -> None:
    """uv is replaced by a fake; the test checks what it is asked for."""
    links = ("cat", "rm", "mkdir", "sha256sum", "cut", "flock")
    tools = _tools(tmp_path, ("make",), links, uv='echo "$@" >>asked\nmkdir -p .venv')
    (tools / "dpkg-query").unlink()
    (tools / "python3").unlink()
    # Off Debian there may be no python3 where Debian has it.
    script = (REPOSITORY / "setup").read_text().replace("/usr/bin/python3", "/nowhere/python3")
    (tmp_path / "setup").write_text(script)
    (tmp_path / "packages.list").write_text(_PACKAGES)
    for name in ("requirements.lock", "requirements-user.lock", "pyproject.toml"):
        shutil.copy(REPOSITORY / name, tmp_path)

    done = _setup(tmp_path, tools, *words.split())
    assert done.returncode == 0, done.stderr
    assert f"missing, by Debian's names: {missing}\n" in done.stderr
    assert done.stdout.endswith(f'PATH="{tmp_path}/.venv/bin:$PATH" && firsttouch --help\n')
    asked = (tmp_path / "asked").read_text().splitlines()
    assert [line.split()[0] for line in asked] == ["venv", "pip", "pip"]
    assert "--require-hashes" in asked[1] and "--no-build-isolation" in asked[2]
    assert asked[1].endswith(f"-r {lock}")
    assert (tmp_path / ".venv/made-from").exists()
    # What is there is enough, also where nobody can write; root writes anywhere unless it cannot.
    tmp_path.chmod(0o555)
    cannot = [str(shutil.which("setpriv")), "--inh-caps=-all", "--bounding-set=-all"]
    done = _setup(tmp_path, tools, "venv", before=cannot if os.geteuid() == 0 else ())
    tmp_path.chmod(0o755)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("conflict", [True, False])
def test_setup_removes_no_package(tmp_path: Path, conflict: bool) -> None:
    """apt is replaced by a fake, which is asked what it would remove and then to install."""
    removes = "Remv gcc-multilib [4:12.2.0-3]" if conflict else "Inst qemu-system-arm (1)"
    scripts = {
        "id": "echo 0",
        "apt-get": f'echo "$@" >>asked\ncase "$*" in *" -s "*) echo "{removes}" ;; esac',
        # It does not answer when a service is asked for.
        "systemctl": "exit 1",
    }
    links = ("cat", "rm", "flock", "tr", "tail", "mkdir")
    tools = _tools(tmp_path, ("make",), links, **scripts)
    shutil.copy(REPOSITORY / "setup", tmp_path)
    (tmp_path / "packages.list").write_text(_PACKAGES)
    done = _setup(tmp_path, tools, "lab")
    asked = (tmp_path / "asked").read_text().splitlines()
    installing = [line for line in asked if line.startswith("install") and " -s " not in line]
    if conflict:
        assert done.returncode == 2
        assert "because it would remove gcc-multilib: remove these yourself" in done.stderr
        assert not installing
    else:
        assert installing == ["install -q -y --no-remove --no-install-recommends qemu-system-arm"]


def _held(folder: Path, then: str) -> tuple[int, str]:
    """Run the function of ./setup in `folder`, then a line; return the status and what it said."""
    text = (REPOSITORY / "setup").read_text()
    function = re.search(r"^hold_services\(\) \{.*?^\}$", text, re.M | re.S)
    assert function
    script = f"set -eu\n{function[0].replace('/usr/sbin', str(folder))}\nhold_services\n{then}\n"
    # A shell cannot trap what its parent ignores, such as the hang-up that nohup ignores.
    command = ["env", "--default-signal", "sh", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not done.stderr
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    ("end", "status"),
    [("", 0), ("exit 2", 2), *((f"kill -{s} $$", 128 + n) for s, n in
      (("HUP", 1), ("INT", 2), ("TERM", 15)))],
)  # fmt: skip
def test_services_are_held_until_the_end_however_it_comes(
    tmp_path: Path, end: str, status: int
) -> None:
    policy = tmp_path / "policy-rc.d"
    assert _held(tmp_path, f"{policy} || echo $?\n{end}") == (status, "101\n")
    assert not policy.exists()
