# SPDX-License-Identifier: GPL-2.0
"""The page: the report of `try`, valid HTML that loads nothing, and text of others."""

import re
import subprocess
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

from firsttouch.analysis.dataset import Dataset, make_dataset
from firsttouch.catalog.arms import tried_arm
from firsttouch.catalog.experiments import Params, load_catalog
from firsttouch.files import EXPERIMENTS
from firsttouch.views.html.page import render, write_report
from tests.support import made_results
from tests.support.results import make_profiled, make_result


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_results.experiments(tmp_path_factory.mktemp("catalog"))


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Dataset:
    """A result for every cell of every experiment."""
    plan = made_results.plan(folder)
    return made_results.dataset(tmp_path_factory.mktemp("out"), plan, folder)


@pytest.fixture(scope="module")
def page(dataset: Dataset) -> str:
    return render(dataset)


def test_the_report_of_try_has_what_changed_its_functions_and_nothing_else() -> None:
    arm = tried_arm("mine", 0, "my.patch")
    catalog = load_catalog(["populate"], ["neoverse-n1"], ["stock"]).adding([arm])
    params: Params = {"by": "store", "page": "4k", "size": 40 << 10, "threads": 1}
    counts = {"page_faults": 1000, "instructions_kernel": 2_500_000}
    results = [
        make_result({**counts, "page_faults": 1000 + more}, name, params=params)
        for name, more in (("stock", 0), ("mine", 500))
    ]
    profiled = [make_profiled([100, 200, 300, more], name)
                for name, more in (("stock", 400), ("mine", 700))]  # fmt: skip
    cases = make_dataset(profiled, catalog).cases
    page = render(make_dataset(results, catalog), profiled={"mine": cases})
    assert "<h1>my.patch against stock</h1>" in page
    assert re.findall(r'<section id="([a-z0-9-]+)"', page) == [
        "changes-0", "functions-0", "provenance"
    ]  # fmt: skip
    _, _, functions = page.partition('<section id="functions-0">')
    words = re.sub(r"<[^>]+>", " ", functions.replace("<wbr>", "")).split()
    assert "clear_page 40.00 70.00 +30.00" in " ".join(words)
    assert 'class="flame more"' in functions


def test_the_same_results_give_the_same_bytes_in_any_order(
    tmp_path: Path, folder: Path, page: str
) -> None:
    again = made_results.dataset(tmp_path, reversed(made_results.plan(folder)), folder)
    assert render(again) == page


def test_it_needs_nothing_beside_itself(page: str) -> None:
    assert "<script" not in page
    assert "@import" not in page and "url(" not in page
    outside = set(re.findall(r"(?:https?:)?//[\w.]+[^\s\"<]*", page))
    # The name of a namespace; nothing fetches it.
    assert outside == {"http://www.w3.org/2000/svg"}


def test_the_html_is_valid(tmp_path: Path, dataset: Dataset) -> None:
    done = subprocess.run(
        ["tidy", "-q", "-e", "--show-body-only", "no", write_report(dataset, tmp_path)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_each_picture_is_well_formed_has_its_alternative_and_ids_of_its_own(page: str) -> None:
    pictures = re.findall(r"<svg\b.*?</svg>", page, flags=re.DOTALL)
    assert pictures and len(pictures) == page.count("<figure>")
    for picture in pictures:
        root = ET.fromstring(picture)
        description = root.find("{http://www.w3.org/2000/svg}desc")
        assert root.get("role") == "img" and root.get("aria-label")
        assert description is not None and description.text
        assert root.get("aria-describedby") == description.get("id")
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_text_from_results_cannot_become_markup(tmp_path: Path) -> None:
    evil = '<i>"&</style>'
    results = [
        replace(made, machine=evil, qemu="<script>alert(1)</script>", arm=arm)
        for made in made_results.plan(EXPERIMENTS, ["populate"], by="ldadd", page="4k")
        for arm in (made.arm, f"{evil}{made.arm}")
    ]
    page = render(made_results.dataset(tmp_path, results))
    assert "<script" not in page and "<i>" not in page
    assert page.count("</style>") == 1
    pictures = re.findall(r"<svg\b.*?</svg>", page, flags=re.DOTALL)
    assert pictures
    for picture in pictures:
        assert evil in (ET.fromstring(picture).get("aria-label") or "")
