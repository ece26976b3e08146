# SPDX-License-Identifier: GPL-2.0
"""What times on real hardware say, in sentences, and whether counts agree with them."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from firsttouch.analysis.dataset import Dataset
from firsttouch.analysis.figures import LEAST_BOOTS, SMALL_CHANGE
from firsttouch.analysis.times import ELAPSED, RETIRED, TimedRow, figure_of
from firsttouch.catalog.arms import BASE, CONTROL
from firsttouch.lab.times import Times
from firsttouch.quantities import format_number_of

# The largest part by which emulation's count of the same code may differ from hardware's.
_AGREE = 0.01


def sentences(times: Times, rows: list[TimedRow]) -> Iterator[str]:
    """Say what `again` and the other arms show, how many boots more would, what disturbed."""
    timed = [row for row in rows if row.metric == ELAPSED]
    if times.rounds < LEAST_BOOTS:
        boots = format_number_of(times.rounds, "boots")
        yield f"Too few for an interval: {boots} of each arm; give --boots {LEAST_BOOTS}."
    for name in (arm.name for arm in times.arms if arm.name != BASE):
        changes = [row.changes[name] for row in timed if name in row.changes]
        shown = [change for change in changes if change.shown]
        if name == CONTROL and changes:
            chance = (
                "as chance gives one of twenty"
                if len(shown) <= _by_chance(len(changes))
                else ("more than chance gives: trust no small change of this run")
            )
            yield (
                f"Stock against stock: {len(shown)} of {len(changes)} cells differ"
                + (f", {chance}." if shown else ".")
            )
        elif changes:
            less = sum(change.high < 0 for change in changes)
            more = sum(change.low > 0 for change in changes)
            yield (
                f"{name} against stock: {less} of {len(changes)} cells take less time, {more} "
                f"more; of the others, no difference is shown."
            )
    yield from _by_cpus(times, timed)
    needed = [change.needed for row in timed for change in row.changes.values()]
    if needed:
        enough = [number for number in needed if number is not None]
        most = f"{max(enough):,} boots" if len(enough) == len(needed) else "more than 10,000 boots"
        yield f"A change of {SMALL_CHANGE:.0%} would show in each cell with {most} of each arm."
    if times.resumed:
        yield f"The run was interrupted and resumed after round {', '.join(times.resumed)}."
    yield from times.disturbed
    said = [
        warning for row in timed for change in row.changes.values() for warning in change.warnings
    ]
    for warning in dict.fromkeys(said):
        count = said.count(warning)
        yield f"In {count} of {len(needed)} changes: {warning}."


def _by_cpus(times: Times, rows: list[TimedRow]) -> Iterator[str]:
    """Say what each CPU takes for a page when several touch a share of one mapping each."""
    said: dict[tuple[str, str], dict[str, list[str]]] = {}
    for row in rows:
        params = dict(row.cell.params)
        cpus, size = params.pop("cpus", None), params.get("size")
        if not isinstance(cpus, int) or not isinstance(size, int):
            continue
        pages = size >> 12
        place = times.cells.index(row.cell)
        by_arm = said.setdefault((row.cell.experiment, str(params.get("by", ""))), {})
        for arm, elapsed in row.arms.items():
            faults = [
                value
                for boot in times.boots
                if boot.arm == arm
                and (value := figure_of(boot, place, "page_faults")[0]) is not None
            ]
            many = f", {median(faults) / pages:.2f} faults" if faults else ""
            by_arm.setdefault(arm, []).append(f"{cpus}: {elapsed * cpus / pages:,.0f} ns{many}")
    for (experiment, touch), by_arm in said.items():
        arms = "; ".join(f"{arm} on {', '.join(each)}" for arm, each in by_arm.items())
        title = f"{experiment} {touch}".strip()
        yield f"{title}, each CPU's time for a page by the number of CPUs: {arms}."


def _by_chance(cells: int) -> float:
    """Return how many of so many cells differ by chance, at most, in most runs."""
    return max(1, cells / 10)


def agreement(times: Times, rows: list[TimedRow], counted: Dataset) -> Iterator[str]:
    """Say how hardware's count of kernel instructions differs from emulation's of the same image.

    Repetitions take 5 to 11 % less than a boot's first touches. Emulation of a timed guest's
    commands with their repetitions is within 0.2 % of its PMU for pages of 4 KiB.
    """
    images = {arm.name: arm.image for arm in times.arms}
    far: list[tuple[float, str]] = []
    compared = 0
    for row in rows:
        for case in counted.cases:
            if (case.experiment.name, dict(case.params)) != (
                row.cell.experiment, dict(row.cell.params)
            ) or row.metric != RETIRED:  # fmt: skip
                continue
            for arm, measured in case.arms.items():
                same = measured.result.provenance.digests.get("kernel image") == images.get(arm)
                emulated = measured.metrics.get(RETIRED)
                if same and emulated and arm in row.arms:
                    compared += 1
                    ratio = row.arms[arm] / emulated - 1
                    if abs(ratio) > _AGREE:
                        far.append((ratio, f"{row.cell.command} on {arm}"))
    if compared:
        yield (
            f"Hardware and emulation count the kernel's instructions within 1 % of each other in "
            f"{compared - len(far)} of {compared} cells of the same image."
        )
    if far:
        ratio, cell = max(far, key=lambda pair: abs(pair[0]))
        yield (
            f"Furthest apart: {100 * ratio:+.1f} % in `{cell}`. Emulation counts the first touches "
            "after a boot, hardware those of repetitions, which need fewer new page tables and "
            "lists of pages; errata, features of the CPU and ticks differ, too."
        )
