# SPDX-License-Identifier: GPL-2.0
"""Runs QEMU to a guest's end, and reads what it sent.

The results channel has each command's output, as guest/init.c writes it, then a newline, then an
end marker: a line with the command's number and status. The newline keeps the marker on its own
line if the output does not end in a newline.
"""

from __future__ import annotations

import re
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from firsttouch.errors import GuestError, UserError
from firsttouch.files import check_room
from firsttouch.processes import child_process
from firsttouch.quantities import format_duration, format_size
from firsttouch.tables import Json, json_object, read, read_json
from firsttouch.vm.guest import Counts, Guest
from firsttouch.vm.host import pin_vcpus
from firsttouch.vm.qemu import COUNTS, RESULTS, command

# What says that a word of the command line has no effect. arm64's `nokaslr` has an effect, and
# what is in capital letters is for the environment of init.
_UNKNOWN = re.compile(
    r'Unknown kernel command line parameters "(.*)"|Dynamic Preempt: unsupported mode: (\S+)'
)
_MEANT = re.compile(r"nokaslr|[A-Z_]+=.*")
_SPLATS = ("Kernel panic", "Internal error", "Oops", "BUG:", "WARNING:", "Unable to handle kernel")
# Seconds without output, on the results channel or in the kernel's log, after which a guest counts
# as hung, and seconds that it may take in all. The default plan needs 24 and 120 at most.
SILENCE, DEADLINE = 240.0, 3600.0
# Bytes of a kernel's log after which its guest is ended, and how many of its lines an error has.
_LOG, _LOG_LINES = 64 << 20, 20


class StoppedError(Exception):
    """The run was stopped before the guest ended."""


@dataclass(frozen=True)
class GuestOutput:
    """What a guest did: how its commands ended, and the PMU's counts if it had a PMU."""

    commands: tuple[Done, ...]
    counts: Counts | None


def run_guest(
    guest: Guest,
    log: Path,
    *,
    silence: float | None = None,
    deadline: float = float("inf"),
    stop: threading.Event | None = None,
    splats: bool = False,
) -> GuestOutput:
    """Run `guest` to its end; `log` gets the kernel's log.

    Raises GuestError, with the end of the log, if the kernel logs a warning, an
    oops or a panic (unless `splats` are expected), if the guest is silent for
    `silence` seconds, runs for `deadline` seconds or prints without end, or if
    it ends before its commands. Raises StoppedError as soon as `stop` is set.
    """
    if silence is None:
        # A program of the user's may be silent for any time.
        silence = float("inf") if guest.archive else SILENCE
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_bytes(b"")
    with tempfile.TemporaryDirectory(prefix="firsttouch-guest-") as folder:
        scratch = Path(folder)
        (scratch / RESULTS).write_bytes(b"")
        complaint = _supervise(guest, scratch, log, silence, deadline, stop)
        if not splats:
            _check_log(log, mixed=bool(guest.archive))
        commands = read_channel((scratch / RESULTS).read_bytes().decode(errors="replace"))
        if complaint or commands is None:
            for directory in (scratch, log.parent):
                check_room(directory)
            raise GuestError(
                f"the guest {complaint or 'ended before its commands did'}", log_end(log)
            )
        try:
            counts = read(read_json(scratch / COUNTS), Counts, strict=False) if guest.pmu else None
        except UserError as error:
            raise GuestError(f"the PMU plugin wrote no counts: {error}", log_end(log)) from None
        return GuestOutput(tuple(commands), counts)


def _supervise(
    guest: Guest,
    scratch: Path,
    log: Path,
    silence: float,
    deadline: float,
    stop: threading.Event | None,
) -> str:
    """Run QEMU; return why that failed, empty if it did not."""
    said, pid = scratch / "qemu", scratch / "pid"
    pinned = not guest.pinned
    arguments = [*command(guest, scratch, log), *([] if pinned else ["-pidfile", str(pid)])]
    with said.open("w") as sink, child_process(arguments, stdout=sink) as qemu:
        size, since = 0, time.monotonic()
        end = since + deadline
        while qemu.poll() is None:
            time.sleep(0.05)
            if stop and stop.is_set():
                raise StoppedError
            if not pinned and pid.exists() and (number := pid.read_text().strip()):
                pinned = pin_vcpus(int(number), guest.pinned)
            printed = log.stat().st_size
            now = printed + (scratch / RESULTS).stat().st_size
            if now != size:
                size, since = now, time.monotonic()
            elif time.monotonic() - since > silence:
                return f"printed nothing for {format_duration(silence)}, so it was ended"
            if time.monotonic() > end:
                return f"had not ended after {format_duration(deadline)}, so it was ended"
            if printed > _LOG:
                return f"printed more than {format_size(_LOG)}, so it was ended"
    if qemu.returncode:
        return f"ended with QEMU's status {qemu.returncode}: {said.read_text().strip()[-200:]}"
    return ""


def splats_in(log: Iterable[str]) -> list[str]:
    """Return the lines of a kernel's log that report a warning, an oops or a panic."""
    return [line.strip() for line in log if any(mark in line for mark in _SPLATS)]


def _check_log(log: Path, *, mixed: bool) -> None:
    """Raise GuestError if the kernel complains, or a word of its command line has no effect.

    If a program's output is `mixed` into the log, what has no time is not the kernel's.
    """
    text = log.read_text(errors="replace")
    if mixed:
        text = "\n".join(re.findall(r"\[ *\d+\.\d+\].*", text))
    if splats := splats_in(text.splitlines()):
        raise GuestError(f"the guest's kernel reported an error: {splats[0]}", log_end(log))
    said = _UNKNOWN.findall(text)
    words = [word for words, _ in said for word in words.split() if not _MEANT.fullmatch(word)]
    words += [f"preempt={mode}" for _, mode in said if mode]
    if words:
        raise GuestError(
            f"the guest's kernel does not know {' '.join(words)}: correct the boot words, or "
            "choose a kernel that has them.",
            log_end(log),
        )


def log_end(log: Path) -> list[str]:
    """Return the last lines of a kernel's log, for an error about its guest."""
    return log.read_text(errors="replace").splitlines()[-_LOG_LINES:] if log.exists() else []


_COMMAND_ENDED = re.compile(r"\n?^\{\"command\": (\d+), \"status\": (\d+)\}\n", re.M)


@dataclass(frozen=True)
class Done:
    """How one command of a guest ended: its exit status as in a shell, and its output."""

    status: int
    lines: tuple[str, ...]

    def objects(self) -> list[Mapping[str, Json]]:
        """Return the lines as JSON objects; GuestError if one is something else."""
        objects = []
        for line in self.lines:
            if (value := json_object(line)) is None:
                raise GuestError(f"the guest sent a line that is not a JSON object: {line[:80]!r}")
            objects.append(value)
        return objects


def read_channel(text: str) -> list[Done] | None:
    """Return how each command of a guest ended; None if the guest ended before its commands."""
    *ended, rest = _COMMAND_ENDED.split(text)
    numbers, statuses = ended[1::3], ended[2::3]
    if numbers != [*map(str, range(len(numbers)))] or rest != f'{{"commands": {len(numbers)}}}\n':
        return None
    outputs = [output.removesuffix("\n") for output in ended[::3]]
    return [
        # Not splitlines(): it also splits at characters that JSON may contain.
        Done(int(status), tuple(output.split("\n")) if output else ())
        for output, status in zip(outputs, statuses, strict=True)
    ]
