# SPDX-License-Identifier: GPL-2.0
"""`firsttouch export` of a trace: its faults in the formats of other tools.

Folded stacks are those of Brendan Gregg's FlameGraph. speedscope's format is that of its
file-format-schema.json. Perfetto reads the Trace Event Format of Chrome.
"""

from __future__ import annotations

from collections.abc import Iterator

from firsttouch.finder.kinds import NAMES
from firsttouch.tables import Json, dump_json
from firsttouch.trace.flame import Chain, kind_chains
from firsttouch.trace.reading import Reading
from firsttouch.trace.sentences import command_line

FOLDED, SPEEDSCOPE, PERFETTO = TRACE_FORMATS = ("folded", "speedscope", "perfetto")
_SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def export_trace(reading: Reading, form: str) -> str:
    """Return the faults of a trace in one of `TRACE_FORMATS`.

    A stack begins with the outermost function and ends with the kind of its faults.
    Perfetto gets no stacks, but the number of faults of each kind over the time.
    """
    if form == FOLDED:
        lines = (f"{';'.join(map(_folded, chain))} {n}\n" for chain, n in _stacks(reading))
        return "".join(lines)
    name = command_line(reading.trace)
    return dump_json(_speedscope(reading, name) if form == SPEEDSCOPE else _perfetto(reading, name))


def _stacks(reading: Reading) -> list[tuple[Chain, int]]:
    """Return the chains of functions with a kind at the end, and their faults."""
    return sorted(kind_chains(reading.totals, reading.symbols).items())


def _folded(function: str) -> str:
    """Return a name without what separates names and lines in folded stacks."""
    return function.replace(";", ":").replace("\n", " ")


def _speedscope(reading: Reading, name: str) -> dict[str, Json]:
    stacks = _stacks(reading)
    functions = dict.fromkeys(function for chain, _ in stacks for function in chain)
    frames = {function: number for number, function in enumerate(functions)}
    return {
        "$schema": _SCHEMA,
        "name": name,
        "exporter": "firsttouch",
        "shared": {"frames": [{"name": function} for function in frames]},
        "profiles": [
            {
                "type": "sampled",
                "name": f"page faults of {name}",
                "unit": "none",
                "startValue": 0,
                "endValue": sum(count for _, count in stacks),
                "samples": [[frames[function] for function in chain] for chain, _ in stacks],
                "weights": [count for _, count in stacks],
            }
        ],
    }


def _perfetto(reading: Reading, name: str) -> dict[str, Json]:
    process: dict[str, Json] = {
        "name": "process_name", "ph": "M", "pid": 1, "args": {"name": f"page faults of {name}"}
    }  # fmt: skip
    return {"displayTimeUnit": "ms", "traceEvents": [process, *_counters(reading)]}


def _counters(reading: Reading) -> Iterator[dict[str, Json]]:
    """Yield the faults of each kind in each part of the time; a part's time is in us."""
    line = reading.totals.timeline
    for part in range((line.last >> line.shift) + 1):
        time = (part << line.shift) / 1000
        for kind, counts in zip(NAMES, line.kinds, strict=True):
            # A counter keeps its value until the next: it has to return to zero, once.
            if counts[part] or (part and counts[part - 1]):
                yield {
                    "name": kind, "ph": "C", "pid": 1, "ts": time, "args": {"faults": counts[part]}
                }  # fmt: skip
