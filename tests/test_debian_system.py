# SPDX-License-Identifier: GPL-2.0
"""The Debian system of tests/linux/test_package.py: what does not need one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from firsttouch.errors import GuestError
from tests.support import debian_system, fake_qemu
from tests.support.debian_system import DebianSystem, arm64_programs
from tests.support.fake_qemu import FakeQemu


@pytest.fixture
def qemu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeQemu:
    return fake_qemu.install(tmp_path / "tools", monkeypatch)


@pytest.fixture
def system(tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> DebianSystem:
    """A system with an empty disk, firmware and store."""
    firmware, disk = tmp_path / "firmware", tmp_path / "disk"
    firmware.touch()
    disk.touch()
    (tmp_path / "steps").mkdir()
    (tmp_path / "steps/run").write_text("true\n")
    (tmp_path / "here, there").mkdir()
    monkeypatch.setattr(debian_system, "_FIRMWARE", firmware)
    return DebianSystem(disk)


def test_what_the_steps_print_comes_back_and_is_kept(
    system: DebianSystem, qemu: FakeQemu, tmp_path: Path
) -> None:
    qemu.answer("printed\n")
    for _ in range(2):
        printed = system.run(tmp_path / "steps", tmp_path / "here, there", silence=100)
        assert printed == "printed\n"
        # The second run boots nothing.
        qemu.answer("something else\n")


def test_a_qemu_that_fails_shows_the_end_of_the_console(
    system: DebianSystem, qemu: FakeQemu, tmp_path: Path
) -> None:
    qemu.answer("", log="booted\nhung\n", status=3)
    with pytest.raises(GuestError, match="the system ended with QEMU's status 3") as error:
        system.run(tmp_path / "steps", tmp_path / "here, there", silence=100)
    assert error.value.detail == ["booted", "hung"]


def test_a_silent_system_is_ended(system: DebianSystem, qemu: FakeQemu, tmp_path: Path) -> None:
    qemu.program.write_text(
        qemu.program.read_text().replace("sys.exit(", "__import__('time').sleep(1000)\nsys.exit(")
    )
    with pytest.raises(GuestError, match="the system printed nothing for 1 s"):
        system.run(tmp_path / "steps", tmp_path / "here, there", silence=1)


@pytest.mark.parametrize("mounted", [False, True])
def test_a_host_that_was_made_to_run_arm64_programs_is_put_back(
    mounted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """mount and umount are replaced: they fill and empty a directory."""
    binfmt, tools, interpreter = (tmp_path / name for name in ("binfmt", "tools", "conf"))
    binfmt.mkdir()
    tools.mkdir()
    interpreter.write_text(":qemu-aarch64:\n")
    for name, does in (("mount", f"touch {binfmt}/register"), ("umount", f"rm {binfmt}/*")):
        (tools / name).write_text(f"#!/bin/sh\n{does}\n")
        (tools / name).chmod(0o755)
    monkeypatch.setattr(debian_system, "_BINFMT", binfmt)
    monkeypatch.setattr(debian_system, "_INTERPRETER", interpreter)
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    if mounted:
        (binfmt / "register").touch()
    with arm64_programs():
        assert (binfmt / "register").read_text() == ":qemu-aarch64:"
    if mounted:
        assert (binfmt / "qemu-aarch64").read_text() == "-1"
    else:
        assert not list(binfmt.iterdir())
