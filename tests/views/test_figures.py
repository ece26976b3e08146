# SPDX-License-Identifier: GPL-2.0
"""The figures of experiments, on the page and as SVG files: charts, marks, axes, alternatives."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from firsttouch.analysis.dataset import Dataset
from firsttouch.files import REPOSITORY
from firsttouch.views.html.page import figure_files, render
from firsttouch.views.html.svg import Scale, round_up, scale_for
from tests.support import made_results
from tests.support.made_results import Made

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
    assert len(files) == render(dataset).count("<figure>") > 10
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


def test_marks_come_from_the_arms_files_and_an_arm_without_one_gets_its_own(tmp_path: Path) -> None:
    arms = ("stock", "rmw", "mine")
    results = [
        Made("programs", {"program": program}, arm, {"page_faults": 1 + n})
        for program in ("python", "sqlite")
        for n, arm in enumerate(arms)
    ]
    dataset = made_results.dataset(tmp_path, results)
    page = render(dataset)
    for name in arms:
        mark = dataset.catalog.arms[name].mark
        for color in (mark.light, mark.dark):
            assert f": {color};" in page
        kind = re.search(rf"--(m-\d): {mark.light};", page)
        assert kind
        rule = re.search(rf"^\.{kind[1]} .*$", page, flags=re.MULTILINE)
        assert rule and ("fill: var(--paper)" in rule[0]) == (not mark.filled)
        assert f'class="m {kind[1]}"' in page


def test_ticks_are_round() -> None:
    assert Scale(0, 1, 0, 100).ticks(5) == [0, 0.2, 0.4, 0.6, 0.8, 1]
    assert Scale(1, 10, 0, 100).ticks(14) == list(range(1, 11))


def test_values_far_apart_get_a_logarithmic_axis() -> None:
    assert not scale_for([1, 20], 0, 100).logarithmic
    scale = scale_for([0, 1, 1000], 10, 100)
    assert scale.logarithmic
    assert scale.at(0) == scale.at(1) == 10 < scale.at(31) < scale.at(1000) == 100
    assert scale.ticks(10) == [1, 10, 100, 1000]
    assert [round_up(value) for value in (0.3, 1, 1.1, 3, 70)] == [0.5, 1, 2, 5, 100]
