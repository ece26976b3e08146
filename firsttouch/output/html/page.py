# SPDX-License-Identifier: GPL-2.0
"""The page: sections in the order in which a reader asks, put together by one template."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path

import jinja2
from markupsafe import Markup

from firsttouch.analysis.answers import ANSWERING, answer
from firsttouch.analysis.claims import list_claims
from firsttouch.output.html.conflict import set_conflict_figures, zero_conflict_figures
from firsttouch.analysis.dataset import Dataset, Setting
from firsttouch.analysis.facts import missing_metrics, off_costs, origins
from firsttouch.output.html.faults import faults_figure
from firsttouch.output.html.figure import Figure
from firsttouch.output.html.scan import scan_figures
from firsttouch.output.html.timeline import timeline_figures, why_not_sampled

_TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class Pictures:
    """A section of figures; where there are none, `why` if it is known, and what measures them."""

    anchor: str
    title: str
    lead: str
    figures: list[Figure]
    command: str
    why: str = ""


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"command": _command, "words": _words}
    return environment


def _command(text: str) -> Markup:
    """Return a command that is broken only between options, never inside one."""
    return Markup(" ").join(
        Markup('<span class="o">{}</span>').format(option) for option in re.split(r" (?=--)", text)
    )


def _words(text: str) -> Markup:
    """Return a sentence with what stands between backquotes as code."""
    parts = text.split("`")
    return Markup("").join(
        Markup("<code>{}</code>").format(_command(part)) if index % 2 else part
        for index, part in enumerate(parts)
    )


def render(dataset: Dataset) -> str:
    """Return report.html for `dataset`: one file that asks for nothing outside itself."""
    claims = list_claims(dataset)
    settings = dataset.settings()
    sections = [_faults(dataset), _timeline(dataset), *_caches(dataset)]
    return _environment().get_template("report.html.j2").render(
        style=Markup((_TEMPLATES / "report.css").read_text()),
        settings=settings,
        answers=[(setting, answer(dataset, setting, claims)) for setting in _answering(dataset)],
        claims=claims,
        cited=[experiment for experiment in dataset.experiments.values() if experiment.cited],
        sections=sections,
        anchors={section.anchor for section in sections},
        off_costs=off_costs(dataset),
        missing=missing_metrics(dataset),
        origins=origins(dataset),
        cells=len(dataset.results),
        notes=dataset.notes,
        superseded=dataset.superseded,
    )  # fmt: skip


def _answering(dataset: Dataset) -> list[Setting]:
    """Return the settings whose results say what the features do or cost; or the first."""
    settings = dataset.settings()
    return [setting for setting in settings if dataset.of(setting, *ANSWERING)] or settings[:1]


def _faults(dataset: Dataset) -> Pictures:
    found = [
        faults_figure(dataset, setting, f"faults-{index}")
        for index, setting in enumerate(dataset.settings())
    ]
    return Pictures(
        "faults",
        "Faults per page",
        "An atomic reads before it writes: on stock its first touch is a read fault that maps the "
        "zero page, then a write fault that copies it.",
        [figure for figure in found if figure],
        "firsttouch lab --experiment populate",
    )


def _timeline(dataset: Dataset) -> Pictures:
    figures = []
    for index, setting in enumerate(dataset.settings()):
        figures += timeline_figures(dataset, setting, f"timeline-{index}")
    return Pictures(
        "timeline",
        "Fault by fault",
        "The double fault as it happens, and its disappearance. Sampling makes each fault dearer, "
        "so the times show an order and a pace, and are no price.",
        figures,
        "firsttouch lab --experiment fault-timeline",
        "; ".join(why_not_sampled(dataset)),
    )


def _caches(dataset: Dataset) -> list[Pictures]:
    knees, sweeps, scans = [], [], []
    for index, setting in enumerate(dataset.settings()):
        knees += set_conflict_figures(dataset, setting, f"knee-{index}")
        sweeps += zero_conflict_figures(dataset, setting, f"sweep-{index}")
        scans += scan_figures(dataset, setting, f"scan-{index}")
    return [
        Pictures(
            "set-conflict",
            "Set conflicts",
            "A set holds as many lines as it has ways. Read in turn, one line more and every read "
            "misses.",
            knees,
            "firsttouch lab --experiment set-conflict",
        ),
        Pictures(
            "zero-conflict",
            "The zero page against hot lines",
            "One zero page has one colour: hot lines of that colour lose their set to it, those of "
            "any other colour notice nothing. Several zero pages share the loss out.",
            sweeps,
            "firsttouch lab --experiment zero-conflict",
        ),
        Pictures(
            "zero-scan",
            "What the colours take of the cache",
            "Reading zero-backed memory keeps one page in the cache, or one for each colour. What "
            "that pushes out is the price of the colours.",
            scans,
            "firsttouch lab --experiment zero-scan",
        ),
    ]
