# SPDX-License-Identifier: GPL-2.0
"""Outcomes of guests: each guest runs once, the store keeps its outcome, results are its parts."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from pathlib import Path

from firsttouch.building.store import keep_outcome, stored_outcome
from firsttouch.errors import GuestError
from firsttouch.files import digest
from firsttouch.lab.guests import Job, Traced
from firsttouch.lab.results import Counts, Result
from firsttouch.lab.traces import with_traces
from firsttouch.tables import Fields, Json
from firsttouch.vm.guest import Guest
from firsttouch.vm.pmu import PmuCounts
from firsttouch.vm.protocol import Done
from firsttouch.vm.supervision import DEADLINE, log_end, run_guest


def measure_guest(guest: Guest, key: str, log: Path) -> Fields:
    """Run `guest` as `guest_outcome` does, keep its outcome under `key` and return it."""
    outcome = guest_outcome(guest, log)
    keep_outcome(key, outcome)
    return Fields(log, outcome)


def guest_outcome(
    guest: Guest, log: Path, *, stop: threading.Event | None = None
) -> dict[str, Json]:
    """Run `guest` and return its outcome.

    For each command the outcome has the lines that it printed and the regions
    that the PMU counted for them. Raises GuestError and StoppedError as
    `run_guest` does. Raises GuestError if a command fails, prints nothing, or
    prints a line that is not a JSON object.
    """
    ended = run_guest(guest, log, deadline=DEADLINE, stop=stop)
    printed = [printed_objects(number, done, log) for number, done in enumerate(ended.commands)]
    outcome: dict[str, Json] = {"commands": _join(printed, ended.counts, log)}
    if ended.counts is not None:
        outcome["not_modelled"] = list(ended.counts.not_modelled)
    return outcome


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
    try:
        return list(done.objects())
    except ValueError as error:
        raise GuestError(
            f"the guest sent a line that is not a JSON object: {str(error)[:80]!r}", log_end(log)
        ) from None


def _join(
    printed: list[list[Mapping[str, Json]]], counts: PmuCounts | None, log: Path
) -> list[Json]:
    """Return each command's lines, with the PMU's regions that belong to them.

    The PMU counts regions in the order in which the lines name them.
    """
    named = [sum(len(Fields(log, line).take("regions", list, [])) for line in lines)
             for lines in printed]  # fmt: skip
    if counts is not None and sum(named) != len(counts.regions):
        raise GuestError(
            f"the PMU counted {len(counts.regions)} regions, but the guest's programs name "
            f"{sum(named)}",
            log_end(log),
        )
    commands: list[Json] = []
    begin = 0
    for lines, regions in zip(printed, named, strict=True):
        counted = counts.regions[begin : begin + regions] if counts else ()
        commands.append({"lines": list(lines), "regions": list(counted)})
        begin += regions
    return commands


def measure_job(job: Job, logs: Path, stop: threading.Event) -> list[Result]:
    """Run the guest of `job`, keep its outcome and return the results of its cells.

    Raises GuestError, and keeps nothing, if it fails or recorded what cannot be used.
    """
    log = logs / job.cells[0].log_name
    outcome = guest_outcome(job.guest, log, stop=stop)
    table = Fields(log, outcome)
    derived = keep_traces(job.traced, table) if job.traced else table
    keep_outcome(job.key, outcome)
    return _results(job, derived)


def keep_traces(traced: Traced, outcome: Fields) -> Fields:
    """Return an outcome with traces in place of recordings, as results have it, and keep it.

    Raises GuestError if a recording cannot be used.
    """
    derived = with_traces(outcome, traced.root())
    keep_outcome(traced.key, derived)
    return Fields(outcome.file, derived)


def results_of(job: Job) -> list[Result] | None:
    """Return the results of a job's cells from the store; None if it did not run yet.

    Raises GuestError if this version cannot use what it recorded.
    """
    outcome = stored_outcome(job.traced.key) if job.traced else stored_outcome(job.key)
    if outcome is None and job.traced and (recorded := stored_outcome(job.key)):
        outcome = keep_traces(job.traced, recorded)
    return None if outcome is None else _results(job, outcome)


def _results(job: Job, outcome: Fields) -> list[Result]:
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
