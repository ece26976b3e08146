# SPDX-License-Identifier: GPL-2.0
"""The figures of the report as files of their own, for pages that are not the report."""

from __future__ import annotations

import re
from pathlib import Path

from firsttouch.analysis.dataset import Dataset
from firsttouch.files import write_atomically
from firsttouch.output.html.figure import Figure
from firsttouch.output.html.sections import CHARTS
from firsttouch.output.html.style import picture_style
from firsttouch.output.tables import measuring_command


def write_figures(dataset: Dataset, directory: Path) -> list[Path]:
    """Write each figure of the report to `directory`; return the files.

    The same dataset gives the same names and bytes.
    """
    written = []
    for name, text in figure_files(dataset).items():
        write_atomically(directory / name, text)
        written.append(directory / name)
    return written


def figure_files(dataset: Dataset) -> dict[str, str]:
    """Return each figure of the report: a name that ends in .svg, and its SVG.

    Each asks for nothing outside itself, has a light and a dark form, and
    ends in the command that measures it.
    """
    files = {}
    for platform in dataset.platforms():
        for experiment in dataset.catalog.experiments.values():
            cases = dataset.of(platform, experiment.name)
            if cases:
                command = measuring_command(cases)
                for figure in CHARTS[experiment.chart](dataset, cases, experiment.name):
                    files[_file_name(experiment.name, figure)] = _document(dataset, figure, command)
    return files


def _file_name(experiment: str, figure: Figure) -> str:
    """Return a name that stays when other experiments or platforms are measured too."""
    words = re.sub(r"[^a-z0-9.]+", "-", figure.heading.lower()).strip("-")
    return f"{experiment}-{words}.svg"


def _document(dataset: Dataset, figure: Figure, command: str) -> str:
    picture = figure.wide
    foot = f"{command} --quick" if dataset.quick else command
    drawing = picture.drawing.framed(picture.title, foot)
    style = picture_style(dataset.catalog, drawing.shapes)
    return drawing.document(picture.title, f"{picture.description} {figure.caption}", style)
