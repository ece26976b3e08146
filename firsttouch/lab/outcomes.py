# SPDX-License-Identifier: GPL-2.0
"""Outcomes of guests: each guest runs once, the store keeps its outcome, results are its parts."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from firsttouch.build.outcomes import keep_outcome, kept_outcome
from firsttouch.errors import GuestError
from firsttouch.lab.guests import Job
from firsttouch.lab.results import SCHEMA, Result, read_result
from firsttouch.lab.traces import found_in
from firsttouch.tables import Json, Table
from firsttouch.vm.guest import Guest
from firsttouch.vm.pmu import PmuCounts
from firsttouch.vm.protocol import Done
from firsttouch.vm.supervision import DEADLINE, log_end, run_guest


def measure_guest(
    guest: Guest,
    key: str,
    log: Path,
    *,
    stop: threading.Event | None = None,
    root: Callable[[], Path] | None = None,
) -> Table:
    """Run `guest` as `guest_outcome` does, keep its outcome under `key` and return it."""
    outcome = guest_outcome(guest, log, stop=stop, root=root)
    keep_outcome(key, outcome)
    return Table(log, outcome)


def guest_outcome(
    guest: Guest,
    log: Path,
    *,
    stop: threading.Event | None = None,
    root: Callable[[], Path] | None = None,
) -> dict[str, Json]:
    """Run `guest` and return its outcome.

    For each command the outcome has the lines that it printed and the regions
    that the PMU counted for them. A recording among the lines is replaced by
    what is found in it, and in the pages that the PMU watched; `root` returns
    the folder with the recorded programs. Raises GuestError and StoppedError as
    `run_guest` does. Raises GuestError if a command fails, prints nothing, or
    prints a line that is not a JSON object.
    """
    ended = run_guest(guest, log, deadline=DEADLINE, stop=stop)
    printed = [printed_objects(number, done, log) for number, done in enumerate(ended.commands)]
    if root:
        watches = iter(ended.counts.watches if ended.counts else ())
        printed = [found_in(lines, root(), log, watches) for lines in printed]
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
    named = [sum(len(Table(log, line).take("regions", list, [])) for line in lines)
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


def results_of(job: Job) -> list[Result] | None:
    """Return the results of a job's cells from the store; None if it did not run yet."""
    outcome = kept_outcome(job.key)
    if outcome is None:
        return None
    modelled = outcome.strings("not_modelled") if outcome.has("not_modelled") else None
    results = []
    for position, command in enumerate(outcome.objects("commands")):
        cell = job.cells[position]
        counts = None
        if modelled is not None:
            counts = {"regions": command["regions"], "not_modelled": list(modelled)}
        document: dict[str, Json] = {
            "schema": SCHEMA,
            "key": job.cell_key(position),
            "cell": cell.document(),
            "lines": command["lines"],
            "counts": counts,
            "provenance": job.provenance(cell),
        }
        results.append(read_result(document, outcome.file))
    return results
