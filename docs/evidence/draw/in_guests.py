# SPDX-License-Identifier: GPL-2.0
"""What traces in guests predict of a kernel's setting, beside what a guest with it counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from docs.evidence.draw.declared import Block
from docs.evidence.draw.predicted import NEAR, Tried, load_declared, predicted_table
from firsttouch.analysis.dataset import Dataset
from firsttouch.errors import UserError
from firsttouch.lab.traces import trace_of
from firsttouch.places import REPOSITORY


def in_guests(block: Block, datasets: Mapping[str, Dataset]) -> Iterator[str]:
    """Return the lines of the table, and a sentence on all programs for each remedy.

    The head of a column names a remedy, its arms are without and with it. Both traces
    have the program from its start to its end, with the shell that starts it.
    """
    tried = list(tried_in_guests(block, datasets))
    reasons = load_declared(REPOSITORY / "docs/evidence").guests
    yield from predicted_table(tried, reasons)
    yield ""
    for column in block.columns:
        of = [each for _, _, each in tried if each.remedy == column.head]
        near = sum(abs(each.off) <= NEAR for each in of)
        predicted, measured = (
            sum(counts)
            for counts in zip(*((each.predicted, each.measured) for each in of), strict=True)
        )
        yield (
            f"- {column.head}: {near} of {len(of)} are at most {NEAR * 100:.0f} % off; all "
            f"together {predicted:,} were predicted and {measured:,} measured "
            f"({100 * (measured / predicted - 1):+.1f} %)."
        )


def tried_in_guests(
    block: Block, datasets: Mapping[str, Dataset]
) -> Iterator[tuple[str, int, Tried]]:
    """Yield each program with its faults, and a remedy that was predicted for it and measured."""
    (dataset,) = datasets.values()
    traces = {
        (str(result.cell.params["program"]), result.cell.arm): trace
        for result in dataset.results()
        if (trace := trace_of(result))
    }
    for column in block.columns:
        base, arm = column.arms
        for program, before in ((name, t) for (name, of), t in traces.items() if of == base):
            after = traces.get((program, arm))
            saved = [remedy.saved for remedy in before.remedies if remedy.name == column.head]
            if after is None or not saved:
                raise UserError(f"{block.name}: {program} has no {column.head} on {arm}.")
            yield (
                program,
                before.faults,
                Tried(column.head, arm, before.faults - saved[0], after.faults),
            )
