# SPDX-License-Identifier: GPL-2.0
"""Axes: the position of a value on a drawing, and the values of ticks."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from firsttouch.quantities import format_compact

# Values that span more than this factor get a logarithmic axis.
_SPAN = 30.0


@dataclass(frozen=True)
class Scale:
    """An axis from `low` at position `start` to `high` at `end`.

    A logarithmic axis has no place for a count of zero, so zero is at `nil`,
    separated from `start` by a gap.
    """

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False
    nil: float = 0.0

    def at(self, value: float) -> float:
        """Return the position of `value`."""
        if not self.logarithmic:
            return self.start + (value - self.low) / (self.high - self.low) * (
                self.end - self.start
            )
        if value <= 0:
            return self.nil
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, most: int) -> list[float]:
        """Return at most about `most` round values on the axis."""
        return self._decades(most) if self.logarithmic else self._steps(most)

    def _steps(self, most: int) -> list[float]:
        step = round_up((self.high - self.low) / max(most, 1))
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [round(index * step, 10) for index in range(first, last + 1)]

    def _decades(self, most: int) -> list[float]:
        exponents = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        for digits in ((1, 2, 5), (1, 3), (1,)):
            ticks = [
                digit * 10.0**exponent
                for exponent in exponents
                for digit in digits
                if self.low * 0.999 <= digit * 10.0**exponent <= self.high * 1.001
            ]
            if len(ticks) <= most:
                return ticks
        return ticks[:: math.ceil(len(ticks) / most)]


def round_up(value: float) -> float:
    """Return `value` rounded up to 1, 2 or 5 times a power of ten."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(digit * power for digit in (1, 2, 5, 10) if value <= digit * power * (1 + 1e-9))


def scale_for(values: Iterable[float], start: float, end: float) -> Scale:
    """Return an axis for counts: linear from 0, or logarithmic if they span a large factor."""
    every = list(values)
    top = max(every, default=1.0)
    positive = [value for value in every if value > 0]
    if not positive or top / min(positive) <= _SPAN:
        return Scale(0.0, round_up(top) if top > 0 else 1.0, start, end)
    low = min(positive)
    if min(every) > 0:
        return Scale(low, top, start, end, True)
    # Leave room for zero and the gap.
    return Scale(low, top, start + 34, end, True, start)


def tick_label(value: float) -> str:
    """Return a tick's value without trailing zeros: ``0.5``, ``1,000``, ``20 M``."""
    if abs(value) >= 1e6:
        return format_compact(value)
    return f"{value:,.6g}" if abs(value) < 1000 else f"{value:,.0f}"
