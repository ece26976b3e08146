# SPDX-License-Identifier: GPL-2.0
"""A guest is watched: silence, complaints of its kernel and QEMU's own end are errors."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from firsttouch.errors import GuestError
from firsttouch.vm.guest import Guest
from firsttouch.vm.supervision import StoppedError, run_guest
from tests.support import fake_qemu
from tests.support.fake_qemu import FakeQemu
from tests.vm.conftest import MakeGuest

_DONE = '{"a": 1}\n\n{"command": 0, "status": 0}\n{"commands": 1}\n'


@pytest.fixture
def guest(make_guest: MakeGuest, tmp_path: Path) -> Guest:
    return replace(make_guest(tmp_path / "guest"), pmu=None)


@pytest.fixture
def qemu(guest: Guest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeQemu:
    return fake_qemu.install(tmp_path / "tools", monkeypatch)


def test_what_the_commands_printed_comes_back(guest: Guest, qemu: FakeQemu, tmp_path: Path) -> None:
    qemu.answer(_DONE, log="booted\n")
    ended = run_guest(guest, tmp_path / "log/file")
    assert [done.lines for done in ended.commands] == [('{"a": 1}',)]
    assert ended.counts is None
    assert (tmp_path / "log/file").read_text() == "booted\n"


@pytest.mark.parametrize("splat", ["BUG: bad page", "WARNING: CPU: 0", "Kernel panic - not"])
def test_a_kernel_that_complains_has_no_results_unless_that_is_expected(
    guest: Guest, qemu: FakeQemu, tmp_path: Path, splat: str
) -> None:
    log = f"first\n[ 1.0] {splat}\nlast\n"
    qemu.answer(_DONE, log=log)
    with pytest.raises(GuestError, match=splat) as error:
        run_guest(guest, tmp_path / "log")
    assert error.value.detail == log.splitlines()
    assert run_guest(guest, tmp_path / "log", splats=True).commands


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ('Unknown kernel command line parameters "fault_ahed=64 nokaslr a", will be passed to user',
         "fault_ahed=64 a"),
        ("Dynamic Preempt: unsupported mode: none", "preempt=none"),
    ],
)  # fmt: skip
def test_a_boot_word_that_has_no_effect_is_named(
    guest: Guest, qemu: FakeQemu, tmp_path: Path, said: str, words: str
) -> None:
    qemu.answer(_DONE, log=f"[ 0.0] {said}\n")
    with pytest.raises(GuestError, match=f"does not know {words}: correct the boot words"):
        run_guest(guest, tmp_path / "log")


def test_a_word_that_is_meant_for_another_is_no_mistake(
    guest: Guest, qemu: FakeQemu, tmp_path: Path
) -> None:
    """An early part of arm64 reads `nokaslr`, and init's environment has a layout's padding."""
    log = 'Unknown kernel command line parameters "nokaslr LAYOUT=xx", will be passed to user\n'
    qemu.answer(_DONE, log=log)
    assert run_guest(guest, tmp_path / "log").commands


@pytest.mark.parametrize("results", ["", _DONE[:-2], "{}\n"])
def test_a_guest_that_ended_early_has_no_results(
    guest: Guest, qemu: FakeQemu, tmp_path: Path, results: str
) -> None:
    qemu.answer(results, log="the end\n")
    with pytest.raises(GuestError, match="ended before its commands did") as error:
        run_guest(guest, tmp_path / "log")
    assert error.value.detail == ["the end"]


def test_a_qemu_that_fails_says_why(guest: Guest, qemu: FakeQemu, tmp_path: Path) -> None:
    qemu.answer(_DONE, status=3)
    with pytest.raises(GuestError, match="QEMU's status 3"):
        run_guest(guest, tmp_path / "log")


def test_a_plugin_that_wrote_nothing_is_an_error(
    guest: Guest, qemu: FakeQemu, make_guest: MakeGuest, tmp_path: Path
) -> None:
    qemu.answer(_DONE)
    with pytest.raises(GuestError, match="wrote no counts"):
        run_guest(make_guest(tmp_path / "counted"), tmp_path / "log")


def test_a_guest_ends_as_soon_as_it_is_told_to(
    guest: Guest, qemu: FakeQemu, tmp_path: Path
) -> None:
    qemu.program.write_text(
        qemu.program.read_text().replace("sys.exit(", "__import__('time').sleep(1000)\nsys.exit(")
    )
    qemu.answer(_DONE)
    stop = threading.Event()
    stop.set()
    with pytest.raises(StoppedError):
        run_guest(guest, tmp_path / "log", stop=stop)


@pytest.mark.long
def test_a_silent_guest_is_given_up(guest: Guest, qemu: FakeQemu, tmp_path: Path) -> None:
    qemu.program.write_text(
        qemu.program.read_text().replace("sys.exit(", "__import__('time').sleep(1000)\nsys.exit(")
    )
    with pytest.raises(GuestError, match="printed nothing for 1 s"):
        run_guest(guest, tmp_path / "log", silence=1)


def _slowly(qemu: FakeQemu, statement: str) -> None:
    text = qemu.program.read_text()
    qemu.program.write_text(text.replace("sys.exit(", f"{statement}\nsys.exit("))


@pytest.mark.long
def test_a_guest_that_prints_for_ever_is_given_up_after_its_deadline(
    guest: Guest, qemu: FakeQemu, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    _slowly(
        qemu,
        f"import time\nwhile True: open({str(log)!r}, 'a').write('once more\\n'); time.sleep(0.1)",
    )
    with pytest.raises(GuestError, match="had not ended after 3 s, so it was ended") as error:
        run_guest(guest, log, silence=30, deadline=3)
    assert error.value.detail[-1] == "once more"


@pytest.mark.long
def test_a_guest_that_fills_the_disk_is_given_up(
    guest: Guest, qemu: FakeQemu, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    # 200 MB in all, so that a guest that is not ended does not fill this host's disk.
    _slowly(
        qemu,
        f"for _ in range(100): open({str(log)!r}, 'ab').write(b'a line of a patch\\n' * 111000); "
        "__import__('time').sleep(0.01)",
    )
    with pytest.raises(GuestError, match="printed more than 64 MiB, so it was ended") as error:
        run_guest(guest, log)
    assert error.value.detail[-2] == "a line of a patch"
    assert log.stat().st_size < 1 << 30
