# SPDX-License-Identifier: GPL-2.0
"""What a change costs as the text of a mail, in 72 columns: figures, and how to repeat them."""

from __future__ import annotations

import io
import shlex
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from firsttouch.analysis.cases import Case
from firsttouch.analysis.changes import Changes
from firsttouch.analysis.dataset import Dataset
from firsttouch.catalog.arms import BASE, UNNAMED, Arm
from firsttouch.views.changes import compared_arms
from firsttouch.views.comparison import print_comparison
from firsttouch.views.profile import function_tables
from firsttouch.views.tables import print_tables

_WIDTH = 72
_LIMITS = (
    "These are counts of an emulated CPU, and counts are not times. They do not show what waits "
    "for memory, for a lock or for another CPU, what a CPU predicts or runs ahead, or how long a "
    "barrier or a TLB invalidation takes. Cache misses are those of a model with LRU replacement "
    "and without prefetching; they also change when code moves."
)


def reply(
    dataset: Dataset,
    tried: Sequence[Changes],
    profiled: Mapping[str, Sequence[Case]],
    options: Sequence[str],
) -> str:
    """Return the text of a mail about what the arms of `tried` change.

    `profiled` has by arm the cells that ran again with counts by function.
    `options` are those that select what ran, without the arms.
    """
    text = io.StringIO()
    console = Console(file=text, width=_WIDTH, highlight=False, color_system=None)
    for changes in tried:
        print_comparison(compared_arms(changes), console)
        cases = profiled.get(changes.arm, ())
        print_tables(function_tables(cases, changes.base, changes.arm), console)
        console.print()
    names = {name for changes in tried for name in (changes.base, changes.arm)}
    arms = [arm for name, arm in dataset.catalog.arms.items() if arm.tried and name in names]
    words = ["firsttouch", "try", *(word for arm in arms for word in _options(arm)), *options]
    lines = [
        *_wrapped(text.getvalue()), "To repeat it:", *_command(words), "",
        *_wrapped("\n".join(_made(dataset))), "", *textwrap.wrap(_LIMITS, _WIDTH),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _wrapped(text: str) -> Iterator[str]:
    """Return lines without blanks at their ends; those that are too long go on below."""
    for line in text.splitlines():
        yield from textwrap.wrap(
            line, _WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        ) or [""]


def _options(arm: Arm) -> Sequence[str]:
    """Return the options that make an arm; its files have their names alone, as in a mail."""
    kernel = replace(
        arm.kernel,
        patches=tuple(Path(file.name) for file in arm.kernel.patches),
        fragments=tuple(Path(file.name) for file in arm.kernel.fragments),
    )
    words = replace(arm, kernel=kernel).options()
    return words[2:] if arm.name == UNNAMED else words


def _command(words: Sequence[str]) -> Iterator[str]:
    """Return a shell command as lines that can be pasted together; options keep their values."""
    parts: list[str] = []
    for word in words:
        if parts and not word.startswith("--") and parts[-1].startswith("--"):
            parts[-1] += f" {shlex.quote(word)}"
        else:
            parts.append(shlex.quote(word))
    line = " "
    for part in parts:
        if len(line) + len(part) > _WIDTH - len("  \\") and line.strip():
            yield f"{line} \\"
            line = "   "
        line = f"{line} {part}"
    yield line


def _made(dataset: Dataset) -> Iterator[str]:
    """Return with what the figures were made: sources, files that were tried, and tools."""
    results = dataset.results()
    for release in sorted({result.provenance.kernel_version for result in results}):
        yield f"{BASE}: Linux {release}"
    files = {
        name: digest
        for result in results
        for name, digest in result.provenance.digests.items()
        if name.startswith(("patch ", "fragment "))
    }
    yield from (f"{name}: SHA-256 {digest[:16]}" for name, digest in files.items())
    for what in ("qemu", "compiler"):
        tools = {str(getattr(result.provenance, what)) for result in results}
        yield from (tool.replace("emulator version ", "") for tool in sorted(tools))
