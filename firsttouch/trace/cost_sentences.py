# SPDX-License-Identifier: GPL-2.0
"""What a trace says of the time in faults: an estimate with its interval, basis and bound."""

from __future__ import annotations

from collections.abc import Iterator

from firsttouch.finder.sites import Trace
from firsttouch.quantities import format_number_of, format_share


def cost_sentences(trace: Trace) -> Iterator[str]:
    """Yield the sentences: the estimate, what has no price, and the system time above it."""
    if trace.unpriced:
        yield f"{trace.unpriced}. `firsttouch survey` on the host of the trace measures one."
    if trace.costs:
        priced = sum(cost.faults for cost in trace.costs)
        low, middle, high = (
            sum(cost.faults * max(cost.each + side * cost.spread / 2, 0) for cost in trace.costs)
            for side in (-1, 0, 1)
        )
        share = f", {format_share(middle / 1e9, trace.seconds)} of {trace.seconds:.2f} s"
        each = ", ".join(f"{cost.kind} {cost.each:,.0f} ns" for cost in trace.costs)
        yield (
            f"{format_number_of(priced, 'faults')} took about {middle / 1e6:,.1f} ms "
            f"({low / 1e6:,.1f} to {high / 1e6:,.1f}{share if trace.seconds else ''}), by the "
            f"quartiles of the survey in {trace.basis}: {each}."
        )
        others = {cost.kind for cost in trace.costs}
        left = {kind: n for kind, n in trace.fault_kinds.items() if n and kind not in others}
        if left:
            kinds = ", ".join(sorted(left, key=lambda kind: -left[kind]))
            yield f"{format_number_of(sum(left.values()), 'faults')} have no price: {kinds}."
    if trace.system is not None:
        yield (
            f"All faults and system calls together took {trace.system * 1000:,.0f} ms of system "
            "time, with what tracing adds: the faults took no longer."
        )
