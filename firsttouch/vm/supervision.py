# SPDX-License-Identifier: GPL-2.0
"""Runs a guest to its end, and watches for silence and for kernel warnings."""

from __future__ import annotations

import re
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from firsttouch.errors import GuestError, UserError
from firsttouch.files import check_room, read_end
from firsttouch.processes import child_process
from firsttouch.quantities import format_duration, format_size
from firsttouch.vm.guest import Guest
from firsttouch.vm.kvm import pin_vcpus
from firsttouch.vm.pmu import PmuCounts, read_counts
from firsttouch.vm.protocol import Done, read_channel
from firsttouch.vm.qemu import COUNTS_FILE, RESULTS, command

# What says that a word of the command line has no effect. arm64's `nokaslr` has an effect, and
# what is in capital letters is for the environment of init.
_UNKNOWN = re.compile(
    r'Unknown kernel command line parameters "(.*)"|Dynamic Preempt: unsupported mode: (\S+)'
)
_MEANT = re.compile(r"nokaslr|[A-Z_]+=.*")
_SPLATS = ("Kernel panic", "Internal error", "Oops", "BUG:", "WARNING:", "Unable to handle kernel")
# Seconds without output, on the results channel or in the kernel's log, after
# which a guest counts as hung. The longest cell of the default plan is silent
# for a tenth of this.
SILENCE = 240.0
# Seconds after which a guest that prints goes on for no good reason: the longest of
# the default plan takes two minutes.
DEADLINE = 3600.0
# Bytes of a kernel's log after which its guest is ended, and those read of its end.
_LOG, _LOG_END = 64 << 20, 1 << 16
_LOG_LINES = 20


class StoppedError(Exception):
    """The run was stopped before the guest ended."""


@dataclass(frozen=True)
class Ended:
    """What a guest did: how its commands ended, and the PMU's counts if it had a PMU."""

    commands: tuple[Done, ...]
    counts: PmuCounts | None


def run_guest(
    guest: Guest,
    log: Path,
    *,
    silence: float = SILENCE,
    deadline: float = float("inf"),
    stop: threading.Event | None = None,
    splats: bool = False,
) -> Ended:
    """Run `guest` to its end; `log` gets the kernel's log.

    Raises GuestError, with the end of the log, if the kernel logs a warning, an
    oops or a panic (unless `splats` are expected), if the guest is silent for
    `silence` seconds, runs for `deadline` seconds or prints without end, or if
    it ends before its commands. Raises StoppedError as soon as `stop` is set.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_bytes(b"")
    with tempfile.TemporaryDirectory(prefix="firsttouch-guest-") as scratch:
        results, counts = Path(scratch, RESULTS), Path(scratch, COUNTS_FILE)
        results.write_bytes(b"")
        started = command(guest, Path(scratch), log)
        pid = Path(scratch, "pid")
        if guest.pinned:
            started += ["-pidfile", str(pid)]
        complaint = run_qemu(
            started, Path(scratch, "qemu"), (log, results), silence, stop, deadline=deadline,
            attend=_pinner(pid, guest.pinned) if guest.pinned else None,
        )  # fmt: skip
        if not splats:
            _check_splats(log)
            _check_boot_words(log)
        commands = read_channel(results.read_bytes().decode(errors="replace"))
        if complaint or commands is None:
            for directory in (Path(scratch), log.parent):
                check_room(directory)
            raise GuestError(
                f"the guest {complaint or 'ended before its commands did'}", log_end(log)
            )
        return Ended(tuple(commands), _read_counts(counts, log) if guest.pmu else None)


def run_qemu(
    started: Sequence[str],
    said: Path,
    written: Sequence[Path],
    silence: float,
    stop: threading.Event | None = None,
    *,
    deadline: float = float("inf"),
    attend: Callable[[], None] | None = None,
) -> str:
    """Run the command `started` of QEMU to its end; return why that failed, empty if it did not.

    It is ended if none of the files `written` grows for `silence` seconds, if
    the first of them, the kernel's log, has more than 64 MiB, or after
    `deadline` seconds. `said` gets QEMU's own messages. `attend` is called
    every few hundredths of a second. Raises StoppedError as
    soon as `stop` is set.
    """
    with said.open("w") as sink, child_process(started, stdout=sink) as qemu:
        size, since = 0, time.monotonic()
        end = since + deadline
        while qemu.poll() is None:
            time.sleep(0.05)
            if stop and stop.is_set():
                raise StoppedError
            if attend:
                attend()
            now = sum(file.stat().st_size for file in written)
            if now != size:
                size, since = now, time.monotonic()
            elif time.monotonic() - since > silence:
                return f"printed nothing for {format_duration(silence)}, so it was ended"
            if time.monotonic() > end:
                return f"had not ended after {format_duration(deadline)}, so it was ended"
            if written[0].stat().st_size > _LOG:
                return f"printed more than {format_size(_LOG)}, so it was ended"
    if qemu.returncode:
        return f"ended with QEMU's status {qemu.returncode}: {said.read_text().strip()[-200:]}"
    return ""


def _pinner(pid: Path, cpus: Sequence[int]) -> Callable[[], None]:
    """Return a function that pins a guest's vCPUs as soon as they are there."""
    pinned = False

    def attend() -> None:
        nonlocal pinned
        number = pid.read_text().strip() if not pinned and pid.exists() else ""
        pinned = pinned or (bool(number) and pin_vcpus(int(number), cpus))

    return attend


def _read_counts(file: Path, log: Path) -> PmuCounts:
    try:
        return read_counts(file.read_text())
    except (OSError, UserError) as error:
        raise GuestError(f"the PMU plugin wrote no counts: {error}", log_end(log)) from None


def splats_in(log: Iterable[str]) -> list[str]:
    """Return the lines of a kernel's log that report a warning, an oops or a panic."""
    return [line.strip() for line in log if any(mark in line for mark in _SPLATS)]


def _check_splats(log: Path) -> None:
    with log.open(errors="replace") as lines:
        splats = splats_in(lines)
    if splats:
        raise GuestError(f"the guest's kernel reported an error: {splats[0]}", log_end(log))


def _check_boot_words(log: Path) -> None:
    """Raise GuestError if the kernel says that a word of its command line has no effect."""
    with log.open(errors="replace") as lines:
        said = [match for line in lines if (match := _UNKNOWN.search(line))]
    words = [
        word for match in said for word in (match[1] or "").split() if not _MEANT.fullmatch(word)
    ]
    words += [f"preempt={match[2]}" for match in said if match[2]]
    if words:
        raise GuestError(
            f"the guest's kernel does not know {' '.join(words)}: correct the boot words, or "
            "choose a kernel that has them.",
            log_end(log),
        )


def log_end(log: Path) -> list[str]:
    """Return the last lines of a kernel's log, for an error about its guest."""
    return read_end(log, _LOG_END).splitlines()[-_LOG_LINES:]
