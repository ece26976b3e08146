# SPDX-License-Identifier: GPL-2.0
"""Estimates from a recording that has the faults in some blocks of addresses alone.

A block of 2 MiB is recorded as a whole, with all its faults, or not at all. So what is
given from a page's history and from its neighbours is as exact as in a whole recording;
only how many there are is estimated.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeVar

from firsttouch.finder.kinds import NAMES
from firsttouch.finder.records import Recording
from firsttouch.finder.totals import Totals

_Key = TypeVar("_Key")


def scale(totals: Totals, recording: Recording) -> None:
    """Make all counts of a sample's totals those of the whole, which they then sum up to."""
    ending = recording.ending
    totals.recorded = totals.count
    # What the kernel counted is a better basis than the number of blocks.
    factor = ending.samples / totals.count if ending and totals.count else recording.sample
    totals.stack_kinds = _all_scaled(totals.stack_kinds, factor)
    totals.timeline.kinds = _all_scaled(totals.timeline.kinds, factor)
    for tallies in (totals.programs, totals.threads, totals.processes):
        entries = list(tallies.values())
        for tally, kinds in zip(
            entries, _all_scaled([tally.kinds for tally in entries], factor), strict=True
        ):
            tally.kinds = kinds
    for numbered in (totals.counts, *totals.filled.values()):
        _scale_counter(numbered, factor)
    _scale_counter(totals.allocators, factor)
    _scale_counter(totals.givers, factor)
    for outcome in totals.outcomes.values():
        outcome.saved = round(outcome.saved * factor)
        outcome.most = round(outcome.most * factor)
    totals.anonymous = round(totals.anonymous * factor)
    totals.in_kernel = round(totals.in_kernel * factor)
    totals.undecoded = round(totals.undecoded * factor)
    totals.unwritten = round(totals.unwritten * factor)
    totals.no_huge = round(totals.no_huge * factor)


def errors(totals: Totals, sample: int) -> dict[str, float]:
    """Return two standard errors of each kind's count, as a share of it.

    They are those of a simple random sample of clusters (Cochran, Sampling Techniques, 9A),
    which the blocks are; the pages of a kind stand for its faults.
    """
    return {
        name: 2 * math.sqrt((1 - 1 / sample) * sum(n * n for n in blocks.values())) / whole
        for name, blocks in zip(NAMES, totals.blocks, strict=True)
        if (whole := blocks.total())
    }


def _all_scaled(rows: Sequence[Sequence[int]], factor: float) -> list[list[int]]:
    """Return all numbers times `factor`, rounded so that their sum is what it would be."""
    numbers = iter(_scaled((number for row in rows for number in row), factor))
    return [[next(numbers) for _ in row] for row in rows]


def _scale_counter(counter: Counter[_Key], factor: float) -> None:
    for key, number in zip(counter, _scaled(counter.values(), factor), strict=True):
        counter[key] = number


def _scaled(numbers: Iterable[int], factor: float) -> list[int]:
    scaled, whole, given = [], 0, 0
    for number in numbers:
        whole += number
        scaled.append(round(whole * factor) - given)
        given += scaled[-1]
    return scaled
