# SPDX-License-Identifier: GPL-2.0
"""What the page says about results, and that it names what is missing."""

from __future__ import annotations

import re
import subprocess
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

from firsttouch.analysis.cases import Platform
from firsttouch.analysis.dataset import Dataset, read_dataset
from firsttouch.analysis.published import published_figures
from firsttouch.catalog.experiment_files import experiment_names
from firsttouch.output.html.page import render, write_report
from firsttouch.output.html.provenance import origins
from firsttouch.output.html.published import published_lines
from firsttouch.output.html.switched_off import off_costs
from firsttouch.places import EXPERIMENTS
from tests.support import made_results
from tests.support.made_results import Made
from tests.support.pages import section_of, text_of

PLATFORM = Platform("6.12", "neoverse-n1")


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


def test_every_published_figure_has_its_line(dataset: Dataset) -> None:
    lines = {line.figure: line for line in published_lines(published_figures(dataset))}
    halved = lines["page faults halved"]
    assert (halved.stock, halved.other, halved.change) == ("131,072", "65,536", "-50.00 %")
    assert (halved.verdict, halved.sign) == ("reproduced", "✓")
    assert lines["system time -60 % (Ampere Altra VM)"].verdict == "cannot be judged by counts"


def test_published_figures_that_are_no_change_are_quoted_and_lead_to_their_picture(
    tmp_path: Path,
) -> None:
    page = render(made_results.dataset(tmp_path, _populate()))
    assert "4,687,932 (126 times)" in page
    anchors = re.findall(r'href="#([a-z-]+)"', page)
    assert anchors
    for anchor in anchors:
        assert f'<section id="{anchor}">' in page


def test_each_experiment_has_its_section_in_order_with_figure_and_table(
    dataset: Dataset, page: str
) -> None:
    assert re.findall(r'<section id="([a-z-]+)"', page) == [
        "answer", "claims", *dataset.catalog.experiments, "off", "not-modelled", "provenance",
    ]  # fmt: skip
    assert "Not measured in these results" not in page
    for name in dataset.catalog.experiments:
        section = section_of(page, name)
        figures = re.findall(r"<figure>.*?</figure>", section, flags=re.DOTALL)
        assert figures, name
        for figure in figures:
            assert figure.count("<svg") == 2
            assert re.search(r"<code>.*firsttouch lab.*--experiment.*--arm", figure)
        assert '<table class="cards rows">' in section, name


def test_the_spread_of_a_sweep_is_given(page: str) -> None:
    text = text_of(page)
    assert "arm least mean most hot_color stock 0.01 2.26 9 4 of 4" in text
    assert "color 2.25 2.25 2.25 4 of 4" in text


def test_a_mean_that_lacks_colours_is_marked(tmp_path: Path, folder: Path) -> None:
    results = [
        made_results.without_metrics(made, {"l2_misses": "not seen"})
        if made.arm == "color" and made.params["hot_color"] == 0
        else made
        for made in made_results.plan(folder, ["zero-conflict"], level="l2")
    ]
    text = text_of(render(made_results.dataset(tmp_path, results, folder)))
    assert "stock 0.01 2.26 9 4 of 4" in text
    assert "color 2.25 ≈ 2.25 2.25 3 of 4" in text


def test_an_experiment_without_results_says_so_and_names_the_command(
    tmp_path: Path, folder: Path
) -> None:
    results = made_results.plan(folder, ["populate"], page="4k")
    dataset = made_results.dataset(tmp_path, results, folder)
    text = text_of(render(dataset))
    expected = [
        name
        for name, experiment in dataset.catalog.experiments.items()
        if name != "populate" and (experiment.default or experiment.published or experiment.cited)
    ]
    assert {"fault-timeline", "zero-scan", "openjdk-pretouch"} <= set(expected)
    for name in expected:
        assert (
            f"Not measured in these results. To measure it: firsttouch lab --experiment {name}"
            in text
        )


def test_faults_that_could_not_be_sampled_have_their_reason(tmp_path: Path, folder: Path) -> None:
    results = [
        replace(made, more={"timeline_absent": "this kernel has no perf events"})
        for made in made_results.plan(folder, ["fault-timeline"])
    ]
    text = text_of(render(made_results.dataset(tmp_path, results, folder)))
    assert "Not measured in these results: this kernel has no perf events." in text


def test_what_is_unavailable_is_listed_with_its_reason_and_never_drawn_as_zero(page: str) -> None:
    text = text_of(page)
    assert "this CPU has no CASP" in text
    # One reason for several metrics appears once and names each of them.
    assert "no model of them" in text
    faults = section_of(page, "populate")
    assert faults.count("not measured</text>") == 2 * 3


def test_a_difference_from_nothing_is_no_multiple(page: str) -> None:
    assert "0 on stock</text>" in section_of(page, "fork-exit")


def test_the_cost_when_off_is_signed_and_per_page(dataset: Dataset) -> None:
    lines = {line.cell: line for line in off_costs(dataset)}
    store = lines["switched-off store 4k 256 MiB: instructions_kernel"]
    assert store.stock == "104,857,600 instructions"
    assert store.off == "104,923,136 instructions"
    assert (store.change, store.per_page) == ("+0.06 %", "+1 instructions")
    # Both experiments' own arms beside it.
    assert "read-fault 256 MiB: instructions_kernel" in lines


def test_provenance_names_the_arms_where_they_differ(dataset: Dataset) -> None:
    images = {
        origin.of: origin.value for origin in origins(dataset) if origin.name == "kernel image"
    }
    assert images == {
        "stock, thp-madvise, mthp-64k, mthp-16k": "a" * 64,
        "off, color, color-l2, rmw, on, inorder": "b" * 64,
    }
    for name in ("QEMU", "compiler", "ftbench", "device tree"):
        assert [origin.of for origin in origins(dataset) if origin.name == name] == [""], name
    (machine,) = (origin for origin in origins(dataset) if origin.name == "machine neoverse-n1")
    assert "L1D 64 KiB, 4 ways of 16 KiB, LRU, 4 colours; L2 1 MiB, 8 ways" in machine.value


def test_provenance_that_differs_in_every_cell_is_counted(tmp_path: Path) -> None:
    results = [
        replace(made, digests={"initramfs": f"{number:064}"})
        for number, made in enumerate(_populate())
    ]
    initramfs = [
        o for o in origins(made_results.dataset(tmp_path, results)) if o.name == "initramfs"
    ]
    assert [origin.value for origin in initramfs] == [
        f"{len(results)} values; results.jsonl has that of each cell"
    ]


def test_the_same_results_give_the_same_bytes_in_any_order(
    tmp_path: Path, folder: Path, page: str
) -> None:
    again = made_results.dataset(tmp_path, reversed(made_results.plan(folder)), folder)
    assert render(again) == page


def test_the_report_of_every_experiment_is_small(tmp_path: Path, dataset: Dataset) -> None:
    file = write_report(dataset, tmp_path)
    assert file == tmp_path / "report.html"
    assert file.stat().st_size < 55_000 * len(experiment_names())
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


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
    assert pictures and len(pictures) == 2 * page.count("<figure>")
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
        for made in _populate(by="ldadd", page="4k")
        for arm in (made.arm, f"{evil}{made.arm}")
    ]
    page = render(made_results.dataset(tmp_path, results))
    assert "<script" not in page and "<i>" not in page
    assert page.count("</style>") == 1
    pictures = re.findall(r"<svg\b.*?</svg>", page, flags=re.DOTALL)
    assert pictures
    for picture in pictures:
        assert evil in (ET.fromstring(picture).get("aria-label") or "")


def test_notes_stand_on_the_page(tmp_path: Path) -> None:
    ours = _populate(page="4k")
    directory = made_results.write(tmp_path, [replace(ours[0], experiment="fork-cost"), *ours])
    file = directory / "results.jsonl"
    file.write_text(file.read_text()[:-40])
    dataset = read_dataset(directory)
    text = text_of(render(dataset))
    assert len(dataset.notes) == 2
    assert "has 1 line that is cut off or not a result" in text
    assert "experiments/fork-cost.toml is missing: 1 of its results" in text
    assert "2 faults on the stock kernel" in text


def _populate(**only: str) -> list[Made]:
    return made_results.plan(EXPERIMENTS, ["populate"], **only)
