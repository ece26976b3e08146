# SPDX-License-Identifier: GPL-2.0
"""The figures as SVG files: whole, alone, in words too, and the same each time."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from firsttouch.analysis.dataset import Dataset
from firsttouch.output.html.files import figure_files, write_figures
from firsttouch.output.html.sections import sections
from firsttouch.places import REPOSITORY
from tests.support import made_results

PICTURES = REPOSITORY / "docs/pictures"
_SVG = "{http://www.w3.org/2000/svg}"
# What would make a viewer ask for something else: a link, an import, a script, another file.
_OUTSIDE = re.compile(r"href|@import|url\(|<script|<image|<!DOCTYPE|<!ENTITY|var\(")


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    home = tmp_path_factory.mktemp("results")
    folder = made_results.experiments(home)
    return made_results.dataset(home / "out", made_results.plan(folder), folder)


@pytest.fixture(scope="module")
def files(dataset: Dataset) -> dict[str, str]:
    return figure_files(dataset)


def test_each_figure_of_the_report_is_a_file(dataset: Dataset, files: dict[str, str]) -> None:
    figures = [figure for section in sections(dataset) for figure in section.figures]
    assert len(files) == len(figures) > 10
    assert "populate-6.12-on-neoverse-n1.svg" in files
    for name in files:
        assert re.fullmatch(r"[a-z0-9.-]+\.svg", name), name


def test_each_file_is_well_formed_and_asks_for_nothing_outside_itself(
    files: dict[str, str],
) -> None:
    committed = {str(file): file.read_text() for file in PICTURES.glob("*.svg")}
    assert committed
    for name, text in (files | committed).items():
        root = ET.fromstring(text)
        assert root.tag == f"{_SVG}svg", name
        assert not _OUTSIDE.search(text), name
        # Only the namespace is an address.
        assert re.findall(r"\w+://[^\"]*", text) == ["http://www.w3.org/2000/svg"], name


def test_each_file_has_a_title_a_description_and_the_command(files: dict[str, str]) -> None:
    for name, text in files.items():
        root = ET.fromstring(text)
        named = {element.get("id"): element.text for element in root if element.get("id")}
        assert root.get("role") == "img"
        wanted = str(root.get("aria-labelledby")).split()
        assert len(wanted) == 2 and all(named[word] for word in wanted), name
        words = [element.text for element in root.findall(f"{_SVG}text")]
        assert str(words[-1]).startswith("firsttouch lab --release 6.12 --machine "), name


def test_a_background_of_its_own_by_day_and_by_night(files: dict[str, str]) -> None:
    for name, text in files.items():
        root = ET.fromstring(text)
        shapes = [element for element in root if element.tag in (f"{_SVG}rect", f"{_SVG}g")]
        assert shapes[0].get("class") == "paper", name
        assert (shapes[0].get("width"), shapes[0].get("height")) == (
            root.get("width"),
            root.get("height"),
        )
        day, night = text.partition("</style>")[0].split("@media (prefers-color-scheme: dark)")
        assert ".paper { fill: #fff; }" in day and ".paper { fill: #14171b; }" in night, name


def test_every_class_that_is_drawn_has_its_style(files: dict[str, str]) -> None:
    for name, text in files.items():
        style = text.partition("</style>")[0]
        used = {kind for kinds in re.findall(r'class="([^"]*)"', text) for kind in kinds.split()}
        # These are told from others by nothing but their class.
        for kind in used - {"c0"}:
            assert re.search(rf"\.{re.escape(kind)}\b", style), (name, kind)


def test_the_same_results_give_the_same_files(dataset: Dataset, tmp_path: Path) -> None:
    written = write_figures(dataset, tmp_path / "a b")
    assert {file.name: file.read_text() for file in written} == figure_files(dataset)


def test_an_experiment_alone_has_the_figure_it_has_among_all(
    dataset: Dataset, files: dict[str, str]
) -> None:
    alone = figure_files(dataset.only(["fault-timeline"]))
    assert len(alone) == 2
    assert alone.items() <= files.items()
