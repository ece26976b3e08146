# SPDX-License-Identifier: GPL-2.0
"""The figures of the report as files of their own, for pages that are not the report."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from firsttouch.analysis.dataset import Dataset
from firsttouch.files import write_atomically
from firsttouch.views.html.figure import Picture
from firsttouch.views.html.figures import figures_of
from firsttouch.views.html.flame import profile_flames
from firsttouch.views.html.style import picture_style
from firsttouch.views.profile import case_title, profile_command
from firsttouch.views.rows import by_experiment, measuring_command


def write_figures(dataset: Dataset, directory: Path) -> list[Path]:
    """Write each figure of the report to `directory`; return the files.

    The same dataset gives the same names and bytes.
    """
    return _write(figure_files(dataset), directory)


def write_flame_graphs(dataset: Dataset, directory: Path) -> list[Path]:
    """Write the flame graph of each case that has profiles to `directory`; return the files."""
    return _write(_flame_graphs(dataset), directory)


def _write(files: Mapping[str, str], directory: Path) -> list[Path]:
    for name, text in files.items():
        write_atomically(directory / name, text)
    return [directory / name for name in files]


def figure_files(dataset: Dataset) -> dict[str, str]:
    """Return each figure of the report: a name that ends in .svg, and its SVG.

    Each asks for nothing outside itself, has a light and a dark form, and
    ends in the command that measures it. Names stay when others are measured, too.
    """
    files = _flame_graphs(dataset)
    for cases in by_experiment(dataset):
        command, name = measuring_command(cases, dataset.further), cases[0].experiment.name
        for figure in figures_of(dataset, cases, name):
            files[f"{name}-{_slug(figure.heading)}.svg"] = _picture(
                dataset, figure.wide, command, f"{figure.wide.description} {figure.caption}"
            )
    return files


def _flame_graphs(dataset: Dataset) -> dict[str, str]:
    return {
        f"profile-{_slug(case_title(case))}.svg": _picture(
            dataset, picture, profile_command(case), picture.description
        )
        for case in dataset.cases
        if (picture := profile_flames(case))
    }


def _slug(words: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", words.lower()).strip("-")


def _picture(dataset: Dataset, picture: Picture, command: str, description: str) -> str:
    foot = f"{command} --quick" if dataset.quick else command
    drawing = picture.drawing.framed(picture.title, foot)
    style = picture_style(dataset.catalog, drawing.shapes)
    return drawing.document(picture.title, description, style)
