# SPDX-License-Identifier: GPL-2.0
"""Outcomes of guests: each guest runs once, the store keeps its outcome, results are its parts.

The guard checks that a stock kernel under this QEMU takes the double fault. Under MTTCG QEMU
reports the first access of an LSE atomic as a write, so that a stock kernel takes one fault where
hardware takes two. Every figure of such a run would wrongly show no gain.
"""

from __future__ import annotations

import functools
import re
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from firsttouch import trace
from firsttouch.building.apt import unpack
from firsttouch.building.host_tools import version
from firsttouch.building.store import keep_outcome, stored_outcome
from firsttouch.catalog.machines import PAGE_SIZE
from firsttouch.errors import GuestError, UserError
from firsttouch.files import digest, digest_files
from firsttouch.lab.guests import FTBENCH, Job
from firsttouch.lab.results import TRACE, Result
from firsttouch.progress import Reporter
from firsttouch.tables import Fields, Json, json_object
from firsttouch.trace.records import Recording
from firsttouch.trace.sites import trace_document
from firsttouch.vm.guest import Counts, Guest
from firsttouch.vm.qemu import guest_key
from firsttouch.vm.supervision import DEADLINE, Done, log_end, run_guest


def guest_outcome(guest: Guest, log: Path, stop: threading.Event | None = None) -> dict[str, Json]:
    """Run `guest`; return each command's lines and the regions that the PMU counted for them.

    Raises GuestError and StoppedError as `run_guest` does, and GuestError if a command fails,
    prints nothing, or a line that is not a JSON object.
    """
    ended = run_guest(guest, log, deadline=DEADLINE, stop=stop)
    counts, number = ended.counts.regions if ended.counts else (), 0
    commands: list[Json] = []
    for place, done in enumerate(ended.commands):
        lines = printed_objects(place, done, log)
        # The PMU counts regions in the order in which the lines name them.
        named = sum(len(Fields(log, line).take("regions", list, [])) for line in lines)
        commands.append({"lines": lines, "regions": list(counts[number : number + named])})
        number += named
    if ended.counts is None:
        return {"commands": commands}
    if number != len(counts):
        raise GuestError(
            f"the PMU counted {len(counts)} regions, but the guest's programs name {number}",
            log_end(log),
        )
    return {"commands": commands, "not_modelled": list(ended.counts.not_modelled)}


def printed_objects(number: int, done: Done, log: Path) -> list[Mapping[str, Json]]:
    """Return the objects that command `number` of a guest printed, one a line.

    Raises GuestError if it failed, printed nothing or printed anything else.
    """
    if done.status:
        # ftbench writes its error message, one sentence, to the console.
        said = re.findall(r"ftbench: .*", log.read_text(errors="replace"))
        why = f": {said[-1]}" if said else ""
        raise GuestError(
            f"command {number} of the guest failed with status {done.status}{why}", log_end(log)
        )
    if not done.lines:
        raise GuestError(f"command {number} of the guest printed nothing", log_end(log))
    return done.objects()


def measure_job(job: Job, logs: Path, stop: threading.Event) -> None:
    """Run the guest of `job` and keep its outcome; GuestError if it fails or cannot be used."""
    keep_outcome(job.key, guest_outcome(job.guest, logs / job.cells[0].log_name, stop=stop))
    if job.recorded:
        # It takes seconds: here, where other guests run.
        outcome_of(job)


def outcome_of(job: Job) -> Fields | None:
    """Return what the store has of the guest of `job`, with traces in place of recordings.

    Raises GuestError if this version cannot use what it recorded.
    """
    if not job.recorded:
        return stored_outcome(job.key)
    key = digest([job.key, trace_digest()])
    outcome = stored_outcome(key)
    if outcome is None and (recorded := stored_outcome(job.key)):
        traced = with_traces(recorded, unpack(job.recorded, job.source.reporter))
        keep_outcome(key, traced)
        return Fields(recorded.file, traced)
    return outcome


@functools.cache
def trace_digest() -> str:
    """Return the digest of the code that decides what is found in a recording."""
    folder = Path(trace.__path__[0])
    return digest_files(folder, folder.glob("*.py"))


def with_traces(outcome: Fields, root: Path) -> dict[str, Json]:
    """Return an outcome that has what is found in each recording in its place.

    A recording has a megabyte or more. `root` has the files of the recorded programs. Raises
    GuestError if a recording is not whole, or its program failed.
    """
    commands: list[Json] = []
    for command in outcome.tables("commands"):
        lines = command.objects("lines")
        traced: list[Json] = [_traced(line, root) if _RECORDING in line else line for line in lines]
        commands.append({"lines": traced, **command.rest()})
    return {"commands": commands, **outcome.rest()}


def _traced(line: Mapping[str, Json], root: Path) -> Mapping[str, Json]:
    # The libraries that they use take longer to import than all that reads a result.
    from firsttouch.trace.doubles import Finder
    from firsttouch.trace.mapped_files import MappedFiles
    from firsttouch.trace.reading import summarize
    from firsttouch.trace.symbols import Symbols

    with tempfile.TemporaryDirectory(prefix="firsttouch-recording-") as scratch:
        file = Path(scratch, "data")
        try:
            file.write_bytes(bytes.fromhex(str(line[_RECORDING])))
            recording, files = Recording(file), MappedFiles(root, copies=True)
            faults = Finder(recording, files).run()
        except (ValueError, UserError) as error:
            raise GuestError(f"a guest recorded no faults: {error}") from None
        found = summarize(recording, faults, Symbols(files))
    if found.status or found.lost or not found.complete:
        raise GuestError(
            f"a recorded program ended with status {found.status}, and {found.lost:,} faults "
            "were lost"
        )
    return {TRACE: json_object(trace_document(found, ()))}


def results_of(job: Job) -> list[Result] | GuestError | None:
    """Return the stored results of a job's cells; None if it did not run yet."""
    try:
        outcome = outcome_of(job)
    except GuestError as error:
        # What this version cannot use fails its cells, and no other.
        return error
    if outcome is None:
        return None
    modelled = outcome.strings("not_modelled") if outcome.has("not_modelled") else None
    return [
        Result(
            digest([job.key, position]),
            job.cells[position],
            command.objects("lines"),
            None if modelled is None else Counts(command.objects("regions"), modelled),
            job.provenance(job.cells[position]),
        )
        for position, command in enumerate(outcome.tables("commands"))
    ]


_RECORDING = "recording"
# Number of pages that the guard touches; few, so that it is quick.
PAGES = 1024
# Kinds of first touch that cost a stock kernel two faults. The second is for
# CPUs without the first.
KINDS = ("ldadd", "ldxr")


def guard(jobs: Iterable[Job], logs: Path, reporter: Reporter) -> None:
    """Check the first job on a kernel without the features of each machine and number of CPUs."""
    first: dict[tuple[str, int], Job] = {}
    for job in jobs:
        if job.arm.kernel.unchanged:
            first.setdefault((job.cells[0].machine, job.guest.cpus), job)
    for (machine, cpus), job in first.items():
        log = logs / f"guard-{machine}-{cpus}.log"
        faults = check_double_fault(functools.partial(_line_of, job.guest, log), cpus)
        where = machine + f" with {cpus} CPUs" * (cpus > 1)
        reporter.say(
            f"Guard: {job.arm.name} on {where} takes {faults:,} faults for {PAGES:,} atomics."
        )


def _line_of(other: Guest, log: Path, command: str) -> Fields:
    """Return the last line that `command` prints on the kernel of another guest.

    The guest has neither boot parameters nor a disk nor a PMU, and nothing of a user's program:
    all programs have the same.
    """
    bare = replace(other, boot=(), disk=None, archive=None, pmu=None)
    guest = replace(bare, commands=(command,), files={FTBENCH: other.files[FTBENCH]})
    key = guest_key(guest)
    outcome = stored_outcome(key)
    if outcome is None:
        outcome = Fields(log, guest_outcome(guest, log))
        keep_outcome(key, outcome.rest())
    return outcome.tables("commands")[0].tables("lines")[-1]


def check_double_fault(run: Callable[[str], Fields], cpus: int = 1) -> int:
    """Return the page faults that a stock kernel takes for the guard's pages.

    `run` runs a command in a guest of `cpus` CPUs and returns the line that it printed. Raises
    GuestError if there are not two faults per page: then QEMU hides the effect.
    """
    rest = f"--page 4k --size {PAGES * PAGE_SIZE} --cpus {cpus}"
    for kind in KINDS:
        line = run(f"{FTBENCH} populate --set-thp --by {kind} {rest}")
        faults = line.table("metrics").take("page_faults", int, 0)
        if not faults:
            continue
        # The program itself and its threads take a few faults: allow one per ten pages.
        if abs(faults - 2 * PAGES) > PAGES // 10:
            raise GuestError(
                f"a stock kernel took {faults:,} page faults for {PAGES:,} first touches by "
                f"{kind}, not {2 * PAGES:,}: {version()} hides the double fault: "
                "measure with the QEMU of Debian 12 or newer"
            )
        return faults
    raise GuestError(
        f"the guest could not run any of {', '.join(KINDS)}: choose a machine whose CPU can."
    )
