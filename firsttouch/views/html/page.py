# SPDX-License-Identifier: GPL-2.0
"""The page: the answer first, then a section per experiment, from one template."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from pathlib import Path

import jinja2
from markupsafe import Markup

from firsttouch.analysis.changes import changes
from firsttouch.analysis.dataset import Dataset
from firsttouch.analysis.published import published_figures
from firsttouch.catalog.arms import BASE
from firsttouch.files import write_atomically
from firsttouch.views.answers import answer, answering
from firsttouch.views.changes import changes_section
from firsttouch.views.html.figure import Figure
from firsttouch.views.html.provenance import origins
from firsttouch.views.html.published import published_lines
from firsttouch.views.html.sections import sections
from firsttouch.views.html.style import page_style
from firsttouch.views.html.switched_off import off_costs
from firsttouch.views.labels import QUICK, group_by_reason

FILE_NAME = "report.html"
_TEMPLATES = Path(__file__).parent / "templates"


def write_report(
    dataset: Dataset, directory: Path, hardware: Sequence[Figure] = (), base: str = BASE
) -> Path:
    """Write `directory`/report.html; return the file. The same arguments give the same bytes."""
    file = directory / FILE_NAME
    write_atomically(file, render(dataset, hardware, base))
    return file


def render(dataset: Dataset, hardware: Sequence[Figure] = (), base: str = BASE) -> str:
    """Return report.html for `dataset`: one file that loads nothing else.

    `hardware` are the figures of real machines, `base` is the arm with which tried arms are
    compared.
    """
    published = published_figures(dataset)
    drawn = sections(dataset)
    return page_template("report.html.j2").render(
        style=Markup(page_style(dataset.catalog)),
        platforms=dataset.platforms(),
        tried=[changes_section(changed) for changed in changes(dataset, base)],
        answers=[(where, answer(dataset, where, published)) for where in answering(dataset)],
        published=published_lines(published),
        cited=[each for each in dataset.catalog.experiments.values() if each.cited],
        sections=drawn,
        hardware=hardware,
        anchors={section.anchor for section in drawn},
        off_costs=list(off_costs(dataset)),
        missing=group_by_reason(
            (gap.metric, reason, gap.case.experiment.name)
            for gap in dataset.gaps
            for reason in gap.reasons.values()
        ),
        origins=origins(dataset),
        cells=len(dataset.results()),
        notes=dataset.notes,
        quick=QUICK if dataset.quick else "",
    )  # fmt: skip


@functools.cache
def page_template(name: str) -> jinja2.Template:
    """Return the template of a page; undefined names in it are errors."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"command": _command, "words": _words, "name": _name}
    return environment.get_template(name)


def _command(text: str) -> Markup:
    """Return a command that breaks across lines only between options."""
    return Markup(" ").join(
        Markup('<span class="o">{}</span>').format(option) for option in re.split(r" (?=--)", text)
    )


def _name(text: str) -> Markup:
    """Return a name that breaks across lines after an underscore rather than elsewhere."""
    return Markup("_<wbr>").join(text.split("_"))


def _words(text: str) -> Markup:
    """Return a sentence whose parts in backquotes are code."""
    parts = text.split("`")
    return Markup("").join(
        Markup("<code>{}</code>").format(_command(part)) if index % 2 else part
        for index, part in enumerate(parts)
    )
