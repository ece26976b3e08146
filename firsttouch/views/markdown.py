# SPDX-License-Identifier: GPL-2.0
"""`firsttouch export`: the rows as Markdown for people, or as CSV for spreadsheets and pandas."""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress

from firsttouch.analysis.cases import Case
from firsttouch.analysis.dataset import Dataset
from firsttouch.analysis.distributions import changes_over
from firsttouch.analysis.verdicts import NOT_PUBLISHED
from firsttouch.quantities import format_change, format_value
from firsttouch.views.labels import QUICK, SPREAD, change_head, spread_words, verdict_words
from firsttouch.views.names import format_params, varying

FORMATS = ("md", "csv")
_COLUMNS = (
    "release", "kernel_version", "machine", "experiment", "params", "metric", "unit", "arm",
    "value", "change_percent", "against", "verdict", "quick", "command",
)  # fmt: skip


def export(dataset: Dataset, form: str) -> str:
    """Return the rows in one of `FORMATS`, each with release, kernel version and command."""
    return _csv(dataset) if form == "csv" else "".join(f"{line}\n" for line in _markdown(dataset))


def kernel_versions(cases: Sequence[Case]) -> str:
    """Return the versions of the kernels that `cases` were measured on."""
    versions = {
        measured.result.provenance.kernel_version
        for case in cases
        for measured in case.arms.values()
    }
    return ", ".join(sorted(versions))


def _csv(dataset: Dataset) -> str:
    """Return a line for each figure of each arm; numbers are unrounded, sizes in bytes."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for row in dataset.rows:
        case, pair = row.case, row.case.pair()
        for arm, value in row.arms.items():
            result = case.arms[arm].result
            compared = pair is not None and arm == pair[1]
            writer.writerow((
                case.platform.release, result.provenance.kernel_version, case.platform.machine,
                case.experiment.name,
                " ".join(f"{name}={value}" for name, value in case.params.items()),
                row.metric, row.unit, arm, value,
                row.change_percent if compared and row.change_percent is not None else "",
                pair[0] if pair and compared else "",
                row.verdict if compared and row.verdict != NOT_PUBLISHED else "",
                "quick" if result.quick else "",
                result.provenance.command,
            ))  # fmt: skip
    return text.getvalue()


def _markdown(dataset: Dataset) -> Iterator[str]:
    """Return the lines of a table for each experiment on each platform."""
    if dataset.quick:
        yield f"These results are {QUICK}."
        yield ""
    for platform in dataset.platforms():
        for experiment in dataset.catalog.experiments.values():
            cases = dataset.of(platform, experiment.name)
            if not cases:
                continue
            yield f"### {_cell(experiment.title)}"
            yield ""
            yield (
                f"Kernel {platform.release} ({kernel_versions(cases)}) on {platform.machine}: "
                f"`{measuring_command(cases, dataset.further)}`"
            )
            yield ""
            yield from _table(dataset, cases)
            yield ""


def measuring_command(cases: Sequence[Case], further: Iterable[Case] = ()) -> str:
    """Return a command that measures all of `cases`; without --set, it may measure more.

    `further` has their other layouts, and may have more.
    """
    first = cases[0]
    tried = tried_options(first)
    words = [
        "firsttouch", "try" if tried else "lab", *_kernel(first),
        "--machine", first.platform.machine, "--experiment", first.experiment.name,
    ]  # fmt: skip
    settings = dict.fromkeys(case.platform.setting for case in cases)
    words += [word for name in settings if name for word in ("--setting", name)]
    sizes = {case.params["size"] for case in cases if "size" in case.params}
    if len(sizes) == 1 and sizes != set(first.experiment.parameters["size"]):
        words += ["--size", str(sizes.pop())]
    here = (first.platform, first.experiment.name)
    layouts = {case.layout for case in further if (case.platform, case.experiment.name) == here}
    layouts |= {case.layout for case in cases}
    if layouts != {0} or first.experiment.layouts > 1:
        words += ["--layouts", f"{min(layouts)}-{max(layouts)}"]
    return shlex.join([*words, *tried])


def tried_options(case: Case) -> list[str]:
    """Return the options that make the arms of `case` that were tried."""
    options = []
    for arm, measured in case.arms.items():
        if measured.result.provenance.tried:
            words = shlex.split(case.command(arm))
            options += words[words.index("--arm") :]
    return options


def _kernel(case: Case) -> list[str]:
    """Return the option that names the kernel of a case: --source where it was the user's own."""
    with suppress(ValueError):
        words = shlex.split(case.command(next(iter(case.arms))))
        if words[2:3] == ["--source"]:
            return words[2:4]
    return ["--release", case.platform.release]


def _table(dataset: Dataset, cases: Sequence[Case]) -> Iterator[str]:
    rows = [row for row in dataset.rows if row.case in cases]
    arms = [arm for arm in dataset.arms(cases) if any(arm in row.arms for row in rows)]
    pairs = {case.pair() for case in cases} - {None}
    change = [change_head(pairs, cases[0].experiment)] if pairs else []
    judged = ["verdict"] if any(row.verdict != NOT_PUBLISHED for row in rows) else []
    heads = ["cell", "metric", "unit", *arms, *change, *judged]
    spread = SPREAD if any(changes_over(row) for row in rows) else ()
    heads[3 + len(arms) + len(change) : 3 + len(arms) + len(change)] = spread
    figures = len(arms) + len(change) + len(spread)
    lines = (
        [
            format_params(varying(row.case.experiment, row.case.params)),
            row.metric,
            "ms" if row.unit == "ns" else row.unit,
            *(format_value(row.arms.get(arm), row.unit).removesuffix(" ms") for arm in arms),
            *([format_change(row.change_percent)] if change else []),
            *(spread_words(row) if spread else ()),
            *([verdict_words(row)] if judged else []),
        ]
        for row in rows
    )
    yield from markdown_table(heads, range(3, 3 + figures), lines)


def markdown_table(
    heads: Sequence[str], figures: Collection[int], rows: Iterable[Sequence[str]]
) -> Iterator[str]:
    """Return a table as its lines; the columns at the positions `figures` hold numbers."""
    yield _line(heads)
    yield _line(["---:" if column in figures else "---" for column in range(len(heads))])
    yield from map(_line, rows)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(_cell, cells)) + " |"


def _cell(text: str) -> str:
    """Return text escaped for a cell: it ends no cell and no line, and has no HTML."""
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
