# SPDX-License-Identifier: GPL-2.0
"""`firsttouch export` of a trace: folded stacks, as of Brendan Gregg's FlameGraph."""

from __future__ import annotations

from firsttouch.trace.charts import kind_chains
from firsttouch.trace.reading import Reading


def folded_trace(reading: Reading) -> str:
    """Return the faults by stack: the outermost function first, the kind in brackets last."""
    stacks = sorted(kind_chains(reading.totals, reading.symbols).items())
    return "".join(f"{';'.join(map(_folded, chain))} {count}\n" for chain, count in stacks)


def _folded(function: str) -> str:
    """Return a name without what separates names and lines in folded stacks."""
    return function.replace(";", ":").replace("\n", " ")
