# SPDX-License-Identifier: GPL-2.0
"""The page: the answer first, then a section per experiment; what a patch changes, for `try`."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import jinja2
from markupsafe import Markup

from firsttouch.analysis.changes import Changes, changes
from firsttouch.analysis.dataset import Dataset, Row
from firsttouch.analysis.measurement import Case
from firsttouch.catalog.arms import BASE
from firsttouch.catalog.experiments import Experiment
from firsttouch.files import write_atomically
from firsttouch.quantities import format_number_of
from firsttouch.views.answers import answer, published_table
from firsttouch.views.changes import compared_arms
from firsttouch.views.comparison import comparison_tables
from firsttouch.views.html.figures import figures_of
from firsttouch.views.html.flame import profile_flames
from firsttouch.views.html.style import arm_style, page_style, picture_style
from firsttouch.views.html.svg import Picture
from firsttouch.views.profile import case_title, function_tables
from firsttouch.views.rows import (
    QUICK,
    by_experiment,
    facts_of,
    gap_table,
    measuring_command,
    row_table,
    spread_table,
)
from firsttouch.views.tables import Table, as_html, html_command

FILE_NAME = "report.html"
_TEMPLATES = Path(__file__).parent / "templates"
_TITLE = "What the first touch of a page costs"
# Longer tables are folded.
_LONG = 16
_NOT_MODELLED = (
    "Time on hardware, contention of CPUs, prefetchers, write buffers and page-table walks. Counts "
    "carry over to hardware; ratios of times on the guest's clock, a nanosecond an instruction, "
    "may not."
)
_ORIGINS = (
    "These inputs determine the figures. Hashes are SHA-256. The same inputs give the same counts "
    "on every host."
)
# More values than this are only counted; results.jsonl has the value of each cell.
_MOST = 12


@dataclass(frozen=True)
class Section:
    """A section of the page; `commands` and `folded` tables open by a click."""

    anchor: str
    title: str
    words: Sequence[str] = ()
    figures: Sequence[Picture] = ()
    tables: Sequence[Table] = ()
    commands: Sequence[str] = ()
    folded: bool = False


def write_report(
    dataset: Dataset, directory: Path, profiled: Mapping[str, Sequence[Case]] | None = None
) -> Path:
    """Write `directory`/report.html; return the file. The same arguments give the same bytes."""
    file = directory / FILE_NAME
    write_atomically(file, render(dataset, profiled))
    return file


def render(dataset: Dataset, profiled: Mapping[str, Sequence[Case]] | None = None) -> str:
    """Return report.html for `dataset`: one file that loads nothing else.

    `profiled` has, by arm, the cells that ran again with counts by function.
    """
    tried = changes(dataset)
    sections = list(_tried(tried, profiled or {}) if tried else _sections(dataset))
    sections.append(Section("provenance", "Provenance", [_ORIGINS], tables=[origins(dataset)]))
    titles = {case.experiment.title for case in dataset.cases}
    title = titles.pop() if len(titles) == 1 else _TITLE
    title = f"{'; '.join(each.meaning for each in tried)} against {BASE}" if tried else title
    return page_template("report.html.j2").render(
        style=Markup(page_style(*arm_style(dataset.catalog))),
        title=title,
        about=f"{'; '.join(map(str, dataset.platforms()))}: "
        f"{format_number_of(len(dataset.results()), 'cells')}, each a run of one kernel",
        notes=dataset.notes,
        quick=QUICK if dataset.quick else "",
        sections=sections,
    )  # fmt: skip


def _tried(tried: Sequence[Changes], profiled: Mapping[str, Sequence[Case]]) -> Iterator[Section]:
    for place, changed in enumerate(tried):
        both, cases = compared_arms(changed), profiled.get(changed.arm, ())
        tables = comparison_tables(both)
        yield Section(f"changes-{place}", both.title, both.notes, tables=tables)
        functions = list(function_tables(cases, changed.arm))
        flames = [
            picture
            for number, case in enumerate(cases)
            if (picture := profile_flames(case, f"flame-{place}-{number}"))
        ]
        if functions or flames:
            yield Section(
                f"functions-{place}", f"Functions that {changed.arm} changes",
                figures=flames, tables=functions,
            )  # fmt: skip


def _sections(dataset: Dataset) -> Iterator[Section]:
    published = dataset.published()
    said = [
        f"{platform}: {sentence}"
        for platform in dataset.platforms()
        if (sentence := answer(dataset, platform))
    ]
    spread = list(filter(None, [spread_table(dataset)]))
    if said or spread:
        yield Section("answer", "The answer", said, tables=spread)
    if published:
        tables = [published_table(published, whole=True)]
        yield Section("claims", "Published figures, and whether they are reproduced", tables=tables)
    measured = list(by_experiment(dataset))
    for number, experiment in enumerate(dataset.catalog.experiments.values()):
        alike = [each for each in measured if each[0][0].experiment.name == experiment.name]
        if alike:
            yield _experiment(dataset, experiment, alike, f"figure-{number}")
    gaps = list(filter(None, [gap_table(dataset)]))
    yield Section("not-modelled", "What is not modelled", [_NOT_MODELLED], tables=gaps)


def _experiment(
    dataset: Dataset, experiment: Experiment,
    platforms: Sequence[tuple[Sequence[Case], Sequence[Row]]], name: str,
) -> Section:  # fmt: skip
    words = [experiment.question, *(f"Published: {each}." for each in experiment.cited)]
    figures: list[Picture] = []
    tables, commands = [], []
    for index, (cases, every) in enumerate(platforms):
        figures += figures_of(dataset, cases, f"{name}-{index}")
        if rows := [row for row in every if row.metric in experiment.shown()] or every:
            title = str(cases[0].platform) if len(platforms) > 1 else ""
            tables.append(replace(row_table(dataset, rows), title=title, about=""))
        commands.append(f"`{measuring_command(cases, dataset.further)}`")
    rows_of_all = sum(len(table.rows) for table in tables)
    return Section(
        experiment.name, experiment.title, words, figures, tables, commands, rows_of_all > _LONG
    )


def origins(dataset: Dataset) -> Table:
    facts: dict[str, dict[str, None]] = {}
    for result in dataset.results():
        for name, value in facts_of(result.provenance).items():
            # That of each cell differs, because it contains the cell's command.
            if value and name != "initial RAM disk":
                facts.setdefault(name, {})[value] = None
    rows = [
        (name, value)
        for name, values in facts.items()
        for value in (
            values
            if len(values) <= _MOST
            else [f"{len(values):,} values; results.jsonl has that of each cell"]
        )
    ]
    return Table("", ("what", "value"), rows, names=2)


@functools.cache
def page_template(name: str) -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"words": _words, "table": as_html}
    return environment.get_template(name)


def _words(text: str) -> Markup:
    parts = text.split("`")
    return Markup("").join(
        html_command(part) if index % 2 else part for index, part in enumerate(parts)
    )


def write_figures(files: Mapping[str, str], directory: Path) -> list[Path]:
    for name, text in files.items():
        write_atomically(directory / name, text)
    return [directory / name for name in files]


def figure_files(dataset: Dataset) -> dict[str, str]:
    """Return each figure of the report: a name that ends in .svg, and its SVG.

    Each asks for nothing outside itself, has a light and a dark form, and
    ends in the command that measures it. Names stay when others are measured, too.
    """
    files = flame_graphs(dataset)
    for cases, _ in by_experiment(dataset):
        command, name = measuring_command(cases, dataset.further), cases[0].experiment.name
        for figure in figures_of(dataset, cases, name):
            file = f"{name}-{_slug(figure.heading)}.svg"
            files[file] = _file_of(dataset, figure, command)
    return files


def flame_graphs(dataset: Dataset) -> dict[str, str]:
    return {
        f"profile-{_slug(case_title(case))}.svg": _file_of(
            dataset, picture, case.command(list(case.arms)[-1])
        )
        for case in dataset.cases
        if (picture := profile_flames(case))
    }


def _slug(words: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", words.lower()).strip("-")


def _file_of(dataset: Dataset, picture: Picture, command: str) -> str:
    style = picture_style(picture.drawing.shapes, *arm_style(dataset.catalog))
    return picture.document(command, style)
