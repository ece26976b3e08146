# SPDX-License-Identifier: GPL-2.0
"""The figures as SVG files: whole, alone, in words too, and the same each time."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from firsttouch.analysis.dataset import Dataset
from firsttouch.places import REPOSITORY
from firsttouch.views.html.files import figure_files
from firsttouch.views.html.sections import sections
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


def test_every_class_that_is_drawn_has_its_style(files: dict[str, str]) -> None:
    for name, text in files.items():
        style = text.partition("</style>")[0]
        used = {kind for kinds in re.findall(r'class="([^"]*)"', text) for kind in kinds.split()}
        # These are told from others by nothing but their class.
        for kind in used - {"c0"}:
            assert re.search(rf"\.{re.escape(kind)}\b", style), (name, kind)
