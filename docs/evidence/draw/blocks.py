# SPDX-License-Identifier: GPL-2.0
"""What stands between markers, drawn: tables with where they come from, and single numbers."""

from __future__ import annotations

import io
import shlex
from collections.abc import Callable, Iterator, Mapping

from rich.console import Console

from docs.evidence.draw.declared import Block, Evidence
from docs.evidence.draw.functions import functions
from docs.evidence.draw.in_guests import in_guests
from docs.evidence.draw.layouts import layouts
from docs.evidence.draw.pivot import pivot
from docs.evidence.draw.whole import whole
from firsttouch.analysis.cache_statistics import (
    FITTING,
    MISSES,
    colored_caches,
    conflict_curves,
    knee,
    running,
    sweeps,
)
from firsttouch.analysis.cases import Platform
from firsttouch.analysis.dataset import Dataset
from firsttouch.catalog.arms import BASE
from firsttouch.errors import UserError
from firsttouch.output.markdown import kernel_versions, markdown_table
from firsttouch.output.terminal import print_answers
from firsttouch.quantities import format_fixed

Datasets = Mapping[str, Dataset]
# As wide as a terminal's answer is at most.
_WIDTH = 100


def draw_block(block: Block, evidence: Evidence, datasets: Datasets) -> str:
    """Return what stands between the markers of `block`, from the `datasets` of its sets.

    A table has where it comes from below it. Raises UserError if a figure was
    not measured.
    """
    if block.kind == "cells":
        return f"{sum(len(dataset.results()) for dataset in datasets.values()):,}"
    lines = list(_DRAWN[block.kind](block, datasets))
    if block.kind in ("answer", "sources"):
        return _apart(lines)
    return _apart([*lines, "", *_origin(evidence, datasets)])


def _apart(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in ["", "", *lines, ""])


def _origin(evidence: Evidence, datasets: Datasets) -> Iterator[str]:
    """Say of each set where its figures come from: kernel, source, and the command.

    Of a set that not every QEMU can measure, say which QEMU did.
    """
    for name, dataset in datasets.items():
        asked = evidence.sets[name]
        command = shlex.join(["firsttouch", *asked.arguments()])
        used = dict.fromkeys(result.provenance.qemu for result in dataset.results())
        yield (
            f"- Linux {kernel_versions(dataset.cases)}, source "
            f"{_digest(dataset, 'kernel source')}: `{command}`"
            f"{''.join(f', {qemu}' for qemu in used) if asked.qemu else ''}"
        )


def _digest(dataset: Dataset, name: str) -> str:
    digests = {result.provenance.digests.get(name, "") for result in dataset.results()}
    if len(digests) != 1 or "" in digests:
        raise UserError(f"not all results of a set name the same {name}: measure them again.")
    return f"`sha256:{digests.pop()}`"


def _answer(_: Block, datasets: Datasets) -> Iterator[str]:
    (dataset,) = datasets.values()
    sink = io.StringIO()
    print_answers(dataset, "out/report.html", Console(file=sink, width=_WIDTH, highlight=False))
    yield "```"
    yield from (line.rstrip() for line in sink.getvalue().splitlines())
    yield "```"


def _sources(_: Block, datasets: Datasets) -> Iterator[str]:
    """Return the tools of all sets, and the kernel and instruments of each."""
    made = [result.provenance for dataset in datasets.values() for result in dataset.results()]
    tools = dict.fromkeys(
        [provenance.qemu for provenance in made] + [provenance.compiler for provenance in made]
    )
    yield from (f"- {tool}" for tool in tools)
    yield ""
    lines = [
        [
            f"`docs/evidence/{name}.jsonl.xz`", f"{len(dataset.results()):,}",
            f"Linux {kernel_versions(dataset.cases)}",
            *(", ".join(_short_digests(dataset, part)) for part in ("PMU", "ftbench")),
        ]
        for name, dataset in datasets.items()
    ]  # fmt: skip
    yield from markdown_table(["raw results", "cells", "kernel", "PMU", "ftbench"], [1], lines)


def _short_digests(dataset: Dataset, part: str) -> list[str]:
    digests = {result.provenance.digests.get(part, "") for result in dataset.results()}
    return [f"`{digest[:8]}`" for digest in sorted(digests - {""})]


def _colors(block: Block, datasets: Datasets) -> Iterator[str]:
    heads = ["machine", "level", "colours", "worst, stock", "worst, colours", "mean, stock",
             "mean, colours", "beside a set, stock", "beside a set, colours"]  # fmt: skip
    lines = [
        [
            cache.platform.machine, cache.level.upper(), str(cache.colors),
            *(format_fixed(spread.worst, 2) for spread in (cache.stock, cache.colored)),
            *(format_fixed(spread.mean, 2) for spread in (cache.stock, cache.colored)),
            *(format_fixed(misses, 0) for misses in cache.beside),
        ]
        for dataset in datasets.values()
        for cache in colored_caches(dataset)
        if block.level in ("", cache.level)
    ]  # fmt: skip
    yield from markdown_table(heads, range(2, len(heads)), lines)


def _spread(block: Block, datasets: Datasets) -> Iterator[str]:
    """Return the spread over hot colours of one machine and level, for misses of each level."""
    lines = []
    for dataset in datasets.values():
        for platform in _platforms(block, dataset):
            for sweep in sweeps(running(dataset, platform, "zero-conflict")):
                if sweep.level != block.level:
                    continue
                for metric in MISSES:
                    lines += [
                        [metric.removesuffix("_misses").upper(), f"`{arm}`",
                         *(format_fixed(v, 3) for v in (spread.best, spread.mean, spread.worst))]
                        for arm, spread in sweep.spreads(metric).items()
                    ]  # fmt: skip
    yield from markdown_table(["misses of", "arm", "best", "mean", "worst"], (2, 3, 4), lines)


def _knee(block: Block, datasets: Datasets) -> Iterator[str]:
    """Return for each machine how many lines of a set fit, and what one more costs."""
    lines = []
    for dataset in datasets.values():
        for platform in _platforms(block, dataset):
            for curve in conflict_curves(running(dataset, platform, "set-conflict")):
                per_read = curve.arms[BASE]
                most = knee(per_read, FITTING) or 0
                lines.append([
                    platform.machine, str(most), format_fixed(per_read.get(most), 5),
                    format_fixed(per_read.get(most + 1), 5),
                ])  # fmt: skip
    heads = ["machine", "lines that fit", "misses per read", "with one line more"]
    yield from markdown_table(heads, (1, 2, 3), lines)


def _platforms(block: Block, dataset: Dataset) -> list[Platform]:
    """Return the platforms that a block is about: those of its machine, or all."""
    return [platform for platform in dataset.platforms() if block.machine in ("", platform.machine)]


_DRAWN: Mapping[str, Callable[[Block, Datasets], Iterator[str]]] = {
    "rows": pivot,
    "colors": _colors,
    "spread": _spread,
    "knee": _knee,
    "answer": _answer,
    "sources": _sources,
    "functions": functions,
    "layouts": layouts,
    "whole": whole,
    "in-guests": in_guests,
}
