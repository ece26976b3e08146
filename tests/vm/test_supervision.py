# SPDX-License-Identifier: GPL-2.0
"""A guest is watched: silence, complaints of its kernel and QEMU's own end are errors."""

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firsttouch.errors import GuestError
from firsttouch.vm.guest import Guest
from firsttouch.vm.supervision import StoppedError, run_guest
from tests.vm.conftest import FakeQemu, MakeGuest

_DONE = '{"a": 1}\n\n{"command": 0, "status": 0}\n{"commands": 1}\n'


@pytest.fixture
def guest(make_guest: MakeGuest, tmp_path: Path) -> Guest:
    return replace(make_guest(tmp_path / "guest"), pmu=None)


@pytest.mark.parametrize(
    "log",
    [
        "booted\n",
        # An early part of arm64 reads `nokaslr`, and init's environment has a layout's padding.
        'Unknown kernel command line parameters "nokaslr LAYOUT=xx", will be passed to user\n',
    ],
)
def test_what_the_commands_printed_comes_back(
    guest: Guest, qemu: FakeQemu, tmp_path: Path, log: str
) -> None:
    qemu.answer(_DONE, log=log)
    ended = run_guest(guest, tmp_path / "log/file")
    assert [done.lines for done in ended.commands] == [('{"a": 1}',)]
    assert ended.counts is None
    assert (tmp_path / "log/file").read_text() == log


def test_a_kernel_that_complains_has_no_results_unless_that_is_expected(
    guest: Guest, qemu: FakeQemu, tmp_path: Path
) -> None:
    log = "first\n[ 1.0] WARNING: CPU: 0\nlast\n"
    qemu.answer(_DONE, log=log)
    with pytest.raises(GuestError, match="WARNING: CPU: 0") as error:
        run_guest(guest, tmp_path / "log")
    assert error.value.detail == log.splitlines()
    assert run_guest(guest, tmp_path / "log", splats=True).commands
    program = replace(guest, archive=tmp_path / "log")
    with pytest.raises(GuestError, match="WARNING: CPU: 0"):
        run_guest(program, tmp_path / "log")
    qemu.answer(_DONE, log="[ 1.0] init: command 0\nWARNING: of a program\n")
    assert run_guest(program, tmp_path / "log").commands


_UNKNOWN = 'Unknown kernel command line parameters "fault_ahed=64 nokaslr a", will be passed to'
_PREEMPT = "Dynamic Preempt: unsupported mode: none"


@pytest.mark.parametrize(
    ("results", "log", "status", "said"),
    [
        (_DONE, _UNKNOWN, 0, "does not know fault_ahed=64 a: correct the boot words"),
        (_DONE, _PREEMPT, 0, "does not know preempt=none: correct the boot words"),
        ("", "the end", 0, "ended before its commands did"),
        (_DONE[:-2], "the end", 0, "ended before its commands did"),
        ("{}\n", "the end", 0, "ended before its commands did"),
        (_DONE, "the end", 3, "QEMU's status 3"),
    ],
)
def test_a_guest_without_results_says_why(
    guest: Guest, qemu: FakeQemu, tmp_path: Path, results: str, log: str, status: int, said: str
) -> None:
    qemu.answer(results, log=f"{log}\n", status=status)
    with pytest.raises(GuestError, match=said) as error:
        run_guest(guest, tmp_path / "log")
    assert error.value.detail == [log]


def test_a_plugin_that_wrote_nothing_is_an_error(
    qemu: FakeQemu, make_guest: MakeGuest, tmp_path: Path
) -> None:
    qemu.answer(_DONE)
    with pytest.raises(GuestError, match="wrote no counts"):
        run_guest(make_guest(tmp_path / "counted"), tmp_path / "log")


def _do(qemu: FakeQemu, statements: str) -> None:
    """Have QEMU do something before it ends."""
    text = qemu.program.read_text()
    qemu.program.write_text(text.replace("sys.exit(", f"import time\n{statements}\nsys.exit("))


def test_a_guest_ends_as_soon_as_it_is_told_to(
    guest: Guest, qemu: FakeQemu, tmp_path: Path
) -> None:
    _do(qemu, "time.sleep(1000)")
    stop = threading.Event()
    stop.set()
    with pytest.raises(StoppedError):
        run_guest(guest, tmp_path / "log", stop=stop)


@pytest.mark.long
def test_a_program_of_the_users_may_print_nothing_until_it_ends(
    guest: Guest, qemu: FakeQemu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("firsttouch.vm.supervision.SILENCE", 1.0)
    (tmp_path / "root.cpio").write_bytes(b"")
    _do(qemu, "time.sleep(1000)")
    with pytest.raises(GuestError, match="had not ended after 3 s, so it was ended"):
        run_guest(replace(guest, archive=tmp_path / "root.cpio"), tmp_path / "log", deadline=3)


@pytest.mark.parametrize(
    ("statements", "limits", "said"),
    [
        ("time.sleep(1000)", {"silence": 1}, "printed nothing for 1 s"),
        ("while True: log.write(b'once more\\n'); time.sleep(0.1)",
         {"silence": 30, "deadline": 10}, "had not ended after 10 s, so it was ended"),
        ("for _ in range(100): log.write(b'once more\\n' * 20000); time.sleep(0.01)",
         {}, "printed more than 1 MiB, so it was ended"),
    ],
    ids=["silent", "endless", "full disk"],
)  # fmt: skip
def test_a_guest_that_does_not_end_is_given_up(
    guest: Guest, qemu: FakeQemu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    statements: str, limits: dict[str, Any], said: str,
) -> None:  # fmt: skip
    monkeypatch.setattr("firsttouch.vm.supervision._LOG", 1 << 20)
    log = tmp_path / "log"
    _do(qemu, f"log = open({str(log)!r}, 'ab', buffering=0)\n{statements}")
    with pytest.raises(GuestError, match=said) as error:
        run_guest(guest, log, **limits)
    if limits.get("silence") != 1:
        assert "once more" in error.value.detail[-2:]
    assert log.stat().st_size < 1 << 30
