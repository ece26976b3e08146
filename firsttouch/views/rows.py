# SPDX-License-Identifier: GPL-2.0
"""The rows of a dataset as tables and as summary.json; names of cells, metrics and values."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from rich.console import Console

from firsttouch.analysis.changes import JUDGED
from firsttouch.analysis.dataset import NOT_PUBLISHED, Dataset, Distribution, Row, Spread, spreads
from firsttouch.analysis.measurement import Case
from firsttouch.catalog.arms import BASE
from firsttouch.catalog.experiments import Experiment, Params, Value
from firsttouch.lab.results import Provenance
from firsttouch.quantities import format_change, format_size, format_value, parse_size
from firsttouch.tables import Json
from firsttouch.views.tables import Table, as_csv, markdown, markdown_cell, print_tables

FORMATS = ("md", "csv")
_COLUMNS = (
    "release", "kernel_version", "machine", "experiment", "params", "metric", "unit", "arm",
    "value", "change_percent", "against", "verdict", "quick", "command",
)  # fmt: skip


_SIZES = ("size", "heap")
# The label of results of `firsttouch lab --quick`.
QUICK = "quick: smaller sizes and fewer cells, a first answer"


def format_params(params: Mapping[str, Value]) -> str:
    """Return a cell's parameters for people: ``ldadd 4k size 1 GiB``."""
    return " ".join(format_param(name, value) for name, value in params.items())


def format_param(name: str, value: Value) -> str:
    """Return one parameter for people; only a number has the parameter's name before it."""
    if name in _SIZES:
        # Results that come from others may hold anything.
        with suppress(ValueError):
            return f"{name} {format_size(parse_size(value))}"
    return f"{name} {value}" if isinstance(value, int) else value


def varying(experiment: Experiment, params: Params) -> Params:

    def varies(name: str) -> bool:
        listed = [str(value) for value in experiment.parameters.get(name, ())]
        return len(listed) != 1 or listed[0].startswith("@")

    return {name: value for name, value in params.items() if varies(name)}


def cell_name(experiment: Experiment, params: Params) -> str:
    """Return a cell's name: the experiment, the parameters that vary, and the size."""
    telling = varying(experiment, params)
    shown = {name: value for name, value in params.items() if name in telling or name == "size"}
    return f"{experiment.name} {format_params(shown)}".replace(" size ", " ").rstrip()


def metric_words(name: str) -> str:
    return JUDGED.get(name) or name.removesuffix("_ns").replace("_", " ")


# Heads of the columns of changes over layouts.
SPREAD = ("min", "median", "max")


def spread_words(row: Row) -> tuple[str, ...]:
    """Return the least, the median and the largest change over layouts; empty without layouts."""
    changes = row.changes_over()
    return tuple(map(format_change, changes.spread)) if changes else ("", "", "")


def verdict_words(row: Row) -> str:
    """Return a row's verdict and in how many layouts it holds; empty if nothing is judged."""
    held = row.holds_in()
    words = f"{row.verdict}, holds in {held[0]} of {held[1]}" if held else row.verdict
    return "" if row.verdict == NOT_PUBLISHED else words


def print_dataset(dataset: Dataset, console: Console) -> None:
    """Print every row: its value on each arm, the change, the verdict on a published figure."""
    print_tables([row_table(dataset, rows) for _, rows in by_experiment(dataset) if rows], console)
    print_tables(filter(None, (spread_table(dataset), gap_table(dataset))), console)


def by_experiment(dataset: Dataset) -> Iterator[tuple[list[Case], list[Row]]]:
    """Yield the cases of each experiment on each platform, and the rows of these."""
    for platform in dataset.platforms():
        for name in dict.fromkeys(case.experiment.name for case in dataset.cases):
            if cases := dataset.of(platform, name):
                yield cases, [row for row in dataset.rows if row.case in cases]


def row_table(dataset: Dataset, rows: Sequence[Row]) -> Table:
    case = rows[0].case
    arms = [arm for arm in dataset.arms(r.case for r in rows) if any(arm in r.arms for r in rows)]
    pairs = {pair for row in rows if (pair := row.case.pair())}
    spread = SPREAD if any(row.changes_over() for row in rows) else ()
    change = ["change"] if pairs else []
    # The head names the arms if they are not the usual pair.
    if len(pairs) == 1 and pairs != {(BASE, case.experiment.compare)}:
        change = [f"change {base} -> {compared}" for base, compared in pairs]
    judged = ("verdict",) if any(row.verdict != NOT_PUBLISHED for row in rows) else ()
    lines = [
        (
            format_params(varying(case.experiment, row.case.params)),
            row.metric,
            "ms" if row.unit == "ns" else row.unit,
            *(format_value(row.arms.get(arm), row.unit).removesuffix(" ms") for arm in arms),
            *(change_words(row.change_percent) for _ in change),
            *(spread_words(row) if spread else ()),
            *(verdict_words(row) for _ in judged),
        )
        for row in rows
    ]
    cells = ("cell",) if any(line[0] for line in lines) else ()
    return Table(
        case.experiment.title,
        (*cells, "metric", "unit", *arms, *change, *spread, *judged),
        [line if cells else line[1:] for line in lines],
        about=f"({case.experiment.name}, {case.platform})",
        names=len(cells) + 2,
        more=len(judged),
        wraps={len(cells) + 1: 12},
    )


def change_words(percent: float | None) -> str:
    """Return a change in words; empty if there is none, or if it rounds to zero."""
    text = format_change(percent)
    return "" if text in (format_change(None), format_change(0)) else text


def spread_table(dataset: Dataset) -> Table | None:
    """Return what colours change in the caches of each machine; None if it was not measured."""
    several = len({platform.release for platform in dataset.platforms()}) > 1
    found: dict[tuple[str, str, str], dict[str, Spread]] = {}
    for platform in dataset.platforms():
        for each in spreads(dataset, platform):
            of = str(platform) if several else platform.machine, each.level, str(each.colors)
            found.setdefault(of, {})[each.arm] = each
    arms = dict.fromkeys(arm for by_arm in found.values() for arm in by_arm)
    rows = [
        (
            *of,
            *(
                f"{by_arm[arm].mean:.2f} ({by_arm[arm].worst:.2f})" if arm in by_arm else "-"
                for arm in arms
            ),
        )
        for of, by_arm in found.items()
    ]
    title = "Misses per round of zero-conflict: mean (worst) over the colours of the hot lines"
    return Table(title, ("machine", "level", "colours", *arms), rows, names=2) if rows else None


def gap_table(dataset: Dataset) -> Table | None:
    missing: dict[tuple[str, str], dict[str, None]] = {}
    for gap in dataset.gaps:
        for reason in gap.reasons.values():
            missing.setdefault((gap.case.experiment.name, reason), {})[gap.metric] = None
    rows = [(name, ", ".join(metrics), why) for (name, why), metrics in missing.items()]
    head = ("experiment", "metrics", "why")
    return Table("Not available", head, rows, names=3, wraps={1: 20, 2: 20}) if rows else None


def export(dataset: Dataset, form: str) -> str:
    """Return the rows in one of `FORMATS`, each with release, kernel version and command."""
    if form == "csv":
        return as_csv(Table("", _COLUMNS, tuple(_tidy(dataset))))
    return "".join(f"{line}\n" for line in _markdown(dataset))


def kernel_versions(cases: Sequence[Case]) -> str:
    arms = [measured for case in cases for measured in case.arms.values()]
    return ", ".join(sorted({each.result.provenance.kernel_version for each in arms}))


# Digests of these names in a provenance have others for people.
_DIGESTS = {"PMU": "modelled PMU", "QEMU": "QEMU's program"}


def facts_of(made: Provenance) -> dict[str, str]:
    """Return what decided a result, by names for people, digests last."""
    digests = {_DIGESTS.get(name, name): value for name, value in made.digests.items()}
    qemu = made.qemu.removeprefix("QEMU ").removeprefix("emulator version ")
    return {"kernel": made.kernel_version, "QEMU": qemu, "compiler": made.compiler,
            "kernel command line": made.boot, **digests}  # fmt: skip


def _tidy(dataset: Dataset) -> Iterator[tuple[str, ...]]:
    """Yield a line for each figure of each arm; numbers are unrounded, sizes in bytes."""
    for row in dataset.rows:
        case, pair = row.case, row.case.pair()
        for arm, value in row.arms.items():
            result = case.arms[arm].result
            compared = pair is not None and arm == pair[1]
            change = row.change_percent if compared else None
            yield (
                case.platform.release, result.provenance.kernel_version, case.platform.machine,
                case.experiment.name,
                " ".join(f"{name}={value}" for name, value in case.params.items()),
                row.metric, row.unit, arm, str(value),
                "" if change is None else str(change),
                pair[0] if pair and compared else "",
                row.verdict if compared and row.verdict != NOT_PUBLISHED else "",
                "quick" if result.quick else "",
                result.provenance.command,
            )  # fmt: skip


def _markdown(dataset: Dataset) -> Iterator[str]:
    if dataset.quick:
        yield from (f"These results are {QUICK}.", "")
    for cases, rows in by_experiment(dataset):
        platform, experiment = cases[0].platform, cases[0].experiment
        yield from (
            f"### {markdown_cell(experiment.title)}",
            "",
            f"Kernel {platform.release} ({kernel_versions(cases)}) on {platform.machine}: "
            f"`{measuring_command(cases, dataset.further)}`",
            "",
            *(markdown(row_table(dataset, rows)) if rows else ()),
            "",
        )


def measuring_command(cases: Sequence[Case], further: Iterable[Case] = ()) -> str:
    """Return a command for at least `cases`, with the layouts of `further`; of a try, the first."""
    first, last = cases[0], list(cases[0].arms)[-1]
    experiment, platform = first.experiment, first.platform
    result = first.arms[last].result
    if result.provenance.tried:
        return first.command(last)
    kernel = ["--release", platform.release]
    # A command in results from others may be anything.
    with suppress(ValueError):
        words = shlex.split(first.command(last))
        kernel = words[2:4] if words[2:3] == ["--source"] else kernel
    words = ["firsttouch", "lab", *kernel, "--machine", platform.machine]
    words += ["--experiment", experiment.name, *["--quick"] * result.quick]
    words += ["--setting", platform.setting] if platform.setting else []
    arms = dict.fromkeys(arm for case in cases for arm in case.arms)
    words += [w for arm in arms for w in ("--arm", arm) if set(arms) != set(experiment.arms)]
    for name, values in experiment.parameters.items():
        has = dict.fromkeys(str(case.params[name]) for case in cases if name in case.params)
        # What the machine decides begins with @.
        every = {str(value) for value in values} if "@" not in str(values) else set(has)
        if has and set(has) != every:
            size = (name, len(has)) == ("size", 1)
            words += [w for v in has for w in (("--size", v) if size else ("--set", f"{name}={v}"))]
    alike = [case for case in further if case.platform == platform]
    layouts = {case.layout for case in (*cases, *alike) if case.experiment == experiment}
    if layouts != {0}:
        words += ["--layouts", f"{min(layouts)}-{max(layouts)}"]
    return shlex.join(words)


SCHEMA = 2


def summary(dataset: Dataset) -> dict[str, Json]:
    """Return the contents of summary.json.

    The same results give the same document: it has nothing that varies between
    hosts or runs.
    """
    return {
        "schema": SCHEMA,
        # From `firsttouch lab --quick`: smaller sizes and fewer cells.
        "quick": dataset.quick,
        "rows": [_row(row) for row in dataset.rows],
        "unavailable": [
            {**gap.case.document(), "metric": gap.metric, "reasons": dict(gap.reasons)}
            for gap in dataset.gaps
        ],
    }


def _row(row: Row) -> dict[str, Json]:
    published = row.published
    return {
        **row.case.document(),
        "metric": row.metric,
        "unit": row.unit,
        "arms": dict(row.arms),
        "change_percent": row.change_percent,
        # The two arms of the change: the base, and the arm that is compared with it.
        "change_of": list(row.case.pair() or ()),
        "published": (
            {"figure": published.figure, "source": published.source} if published else None
        ),
        "verdict": row.verdict,
        # Number of arrangements of kernel and program in memory behind the figure.
        "layouts": len(row.layouts) or 1,
        **({"distribution": _distribution(row)} if row.layouts else {}),
    }


def _distribution(row: Row) -> dict[str, Json]:
    return {
        "change_percent": _spread(row.changes_over()),
        "arms": {arm: _spread(row.values_over(arm)) for arm in row.arms},
        # In how many layouts is the verdict that of the row, and of how many?
        "holds_in": list(row.holds_in() or ()),
    }


def _spread(values: Distribution | None) -> Json:
    if values is None:
        return None
    return dict(zip(("minimum", "median", "maximum"), values.spread, strict=True))
