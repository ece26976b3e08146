# SPDX-License-Identifier: GPL-2.0
"""Traces of Debian's programs, for docs/evidence/doubles.md: their file, and the table of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from docs.evidence.draw.packed import pack, unpack
from docs.evidence.draw.programs import Traced
from firsttouch.finder.document import parse_trace, trace_object
from firsttouch.finder.sites import REMEDIES, Site, Trace
from firsttouch.finder.spaces import ANONYMOUS
from firsttouch.finder.totals import KINDS
from firsttouch.output.markdown import markdown_table
from firsttouch.quantities import format_share
from firsttouch.trace.printing import first_place, remedies_of
from firsttouch.trace.sentences import between

# The sets of traces on this host by the names of their blocks in the documents: Debian's
# programs, and those that are built again, for the lines of their source.
HERE, LINES = "doubles-x86-64", "doubles-lines"
# Places of a program that the table of lines has.
_PLACES = 3


def keep_traces(file: Path, traced: Iterable[Traced]) -> None:
    """Write traces, packed."""
    pack(file, ({"name": each.program, "trace": trace_object(each.trace, ())} for each in traced))


def read_traces(file: Path) -> list[Traced]:
    """Return the traces in a file of `keep_traces`; UserError if it cannot be read."""
    return [
        Traced(entry.take("name", str), parse_trace(entry.table("trace"))) for entry in unpack(file)
    ]


def draw_traces(traced: list[Traced]) -> str:
    """Return the table of all programs, with their sums, and where it comes from."""
    traces = [each.trace for each in traced]
    kinds = [kind for kind in KINDS if any(trace.of_kind(kind) for trace in traces)]
    remedies = [remedy for remedy in REMEDIES if any(trace.removable(remedy) for trace in traces)]
    heads = [
        "program", "faults", "doubles", "share", *kinds, "in files", *remedies,
        "first place in anonymous memory",
    ]  # fmt: skip
    ordered = sorted(traced, key=lambda each: -each.trace.doubles / max(each.trace.faults, 1))
    lines = [
        [each.program, *_figures([each.trace], kinds, remedies), _place(each.trace.sites)]
        for each in ordered
    ]
    lines.append([f"all {len(traced)}", *_figures(traces, kinds, remedies), ""])
    table = markdown_table(heads, range(1, len(heads) - 1), lines)
    return "".join(
        f"{line}\n" for line in ["", "", *table, "", *_origin(traced[0].trace, len(traced)), ""]
    )


def draw_lines(traced: list[Traced]) -> str:
    """Return the table of the source lines of programs, and where it comes from."""
    heads = ["program", "faults", "doubles", "at known lines", "first places with a line"]
    lines = []
    for each in traced:
        with_line = [site for site in each.trace.sites if site.read.line]
        places = [
            f"`{between(site)}`: {site.doubles:,}, {site.memory}" for site in with_line[:_PLACES]
        ]
        counts = (each.trace.faults, each.trace.doubles, sum(site.doubles for site in with_line))
        lines.append([each.program, *(f"{n:,}" for n in counts), "; ".join(places) or "none"])
    table = markdown_table(heads, (1, 2, 3), lines)
    trace = traced[0].trace
    origin = (
        f"- {len(traced)} programs built from Debian 13's source with `-g -O2`, Linux "
        f"{trace.kernel} on {trace.machine}, a host; `docs/evidence/rebuilt.toml` says how."
    )
    return "".join(f"{line}\n" for line in ["", "", *table, "", origin, ""])


def _figures(
    traces: Sequence[Trace], kinds: Sequence[str], remedies: Sequence[str]
) -> Iterator[str]:
    """Yield the sums of traces: faults, doubles, their share, by kind, in files, by remedy."""
    faults, doubles = sum(trace.faults for trace in traces), sum(trace.doubles for trace in traces)
    yield f"{faults:,}"
    yield f"{doubles:,}"
    yield format_share(doubles, faults)
    for kind in kinds:
        yield f"{sum(trace.of_kind(kind) for trace in traces):,}"
    yield f"{doubles - sum(trace.of_memory(ANONYMOUS) for trace in traces):,}"
    for remedy in remedies:
        yield f"{sum(trace.removable(remedy) for trace in traces):,}"


def _place(sites: Iterable[Site]) -> str:
    """Return the first site in anonymous memory: where, how many, and what removes them."""
    first = first_place(sites)
    if first is None:
        return "none"
    return f"`{between(first)}`: {first.doubles:,} ({remedies_of(first)})"


def _origin(trace: Trace, programs: int) -> Iterator[str]:
    where = "a guest of the laboratory" if trace.machine == "aarch64" else "a host"
    yield (
        f"- {programs} programs of Debian 13, Linux {trace.kernel} on {trace.machine}, {where}, as "
        "root; their scripts are in `experiments/doubles.toml`."
    )
