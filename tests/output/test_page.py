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
from firsttouch.catalog.experiment_files import CHARTS as KNOWN_CHARTS
from firsttouch.catalog.experiment_files import experiment_names
from firsttouch.lab.hosts import Audited, Record
from firsttouch.output.html.page import render, write_report
from firsttouch.output.html.provenance import origins
from firsttouch.output.html.published import published_lines
from firsttouch.output.html.scales import Scale, round_up, scale_for
from firsttouch.output.html.sections import CHARTS
from firsttouch.output.html.switched_off import off_costs
from firsttouch.places import EXPERIMENTS
from tests.support import made_results
from tests.support.made_results import Made

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


def _text(page: str) -> str:
    """Return a page's words, without elements and style."""
    body = re.sub(r"<(style|svg)\b.*?</\1>|<wbr>", "", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body))


def _section(page: str, anchor: str) -> str:
    section = re.search(rf'<section id="{anchor}">.*?</section>', page, flags=re.DOTALL)
    assert section, f"no section {anchor}"
    return section[0]


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
        section = _section(page, name)
        figures = re.findall(r"<figure>.*?</figure>", section, flags=re.DOTALL)
        assert figures, name
        for figure in figures:
            assert figure.count("<svg") == 2
            assert re.search(r"<code>.*firsttouch lab.*--experiment.*--arm", figure)
        assert '<table class="cards rows">' in section, name


def test_an_experiment_of_ones_own_has_section_figure_and_table_without_code(
    tmp_path: Path,
) -> None:
    folder = made_results.experiments(tmp_path)
    (folder / "populate-threads.toml").write_text(
        'title = "First touch by several threads"\nquestion = "Do threads fault more?"\n'
        'runs = "populate"\norder = 2\nchart = "lines"\narms = ["stock", "on"]\n'
        '[parameters]\nby = ["ldadd", "swp"]\nthreads = [1, 2, 4]\n'
        '[[metrics]]\nname = "page_faults"\nunit = "faults"\nshown = true\n'
        '[[derived]]\nname = "faults_twice"\nunit = "faults"\nof = "page_faults"\n'
        'per = "page_faults"\n'
    )
    results = [
        Made("populate-threads", {"by": by, "threads": threads}, arm, {"page_faults": faults})
        for by in ("ldadd", "swp")
        for threads in (1, 2, 4)
        for arm, faults in (("stock", 2000 * threads), ("on", 1000 * threads))
    ]
    page = render(made_results.dataset(tmp_path / "out", results, folder))
    section = _section(page, "populate-threads")
    assert page.index('id="populate"') < page.index(section) < page.index('id="switched-off"')
    assert "Do threads fault more?" in section
    # A line for each arm, a figure for each of the other parameters' values.
    assert section.count("<figure>") == 2
    (picture, *_) = re.findall(r"<svg\b.*?</svg>", section, flags=re.DOTALL)
    assert picture.count('class="curve') == 2
    assert "stock: 1 2,000, 2 4,000, 4 8,000; on: 1 1,000, 2 2,000, 4 4,000." in picture
    assert "ldadd threads 4 page_faults 8,000 4,000 -50.00 %" in _text(section)
    assert "ldadd threads 4 faults_twice 1 1 0.00 %" in _text(section)

    (folder / "populate-threads.toml").write_text(
        (folder / "populate-threads.toml").read_text().replace('"lines"', '"dumbbells"')
    )
    page = render(made_results.read(tmp_path / "out", folder))
    section = _section(page, "populate-threads")
    assert section.count("<figure>") == 1
    (picture, *_) = re.findall(r"<svg\b.*?</svg>", section, flags=re.DOTALL)
    assert "by swp: threads 1 stock 2,000 on 1,000, threads 2 stock 4,000" in picture


def test_a_file_may_say_what_its_figure_shows(tmp_path: Path) -> None:
    """A cell that has no divisor is left out; a divided value has a table of its own."""
    folder = made_results.experiments(tmp_path)
    (folder / "own.toml").write_text(
        'title = "Own"\nquestion = "?"\n[parameters]\nby = ["swp", "cas"]\nrounds = [0, 4, 5]\n'
        '[[metrics]]\nname = "boot_us"\nunit = "us"\nshown = true\n'
        '[[figure]]\nmetric = "boot_us"\nper = "rounds"\ngroups = ["by"]\ncaption = "As said."\n'
    )
    results = [
        Made("own", {"by": by, "rounds": rounds}, arm, {"boot_us": us})
        for by in ("swp", "cas")
        for rounds in (0, 4, 5)
        for arm, us in (("stock", 200), ("on", 100))
    ]
    section = _section(render(made_results.dataset(tmp_path / "out", results, folder)), "own")
    assert section.count("<figure>") == 1 and "As said." in section
    (picture, *_) = re.findall(r"<svg\b.*?</svg>", section, flags=re.DOTALL)
    assert "by swp: rounds 4 stock 50 on 25, rounds 5 stock 40 on 20; by cas" in picture
    text = _text(section)
    assert "stock on by swp rounds 4 50 25 by swp rounds 5 40 20 by cas rounds 4" in text


def test_every_chart_that_a_file_may_name_is_there() -> None:
    assert set(CHARTS) == set(KNOWN_CHARTS)


def test_a_chart_without_what_it_needs_leaves_the_table(tmp_path: Path) -> None:
    """Lines need a number that varies, a timeline samples."""
    folder = made_results.experiments(tmp_path)
    for chart in CHARTS:
        (folder / "own.toml").write_text(
            f'title = "Own"\nquestion = "?"\nchart = "{chart}"\n'
            '[parameters]\nprogram = ["a", "b"]\n'
            '[[metrics]]\nname = "boot_us"\nunit = "us"\nshown = true\n'
        )
        results = [
            Made("own", {"program": program}, arm, {"boot_us": 7})
            for program in ("a", "b")
            for arm in ("stock", "on")
        ]
        page = render(made_results.dataset(tmp_path / "out", results, folder))
        assert "a boot_us 7 7 0.00 %" in _text(_section(page, "own")), chart


def test_more_arms_than_columns_have_a_line_each(tmp_path: Path) -> None:
    arms = ("stock", "off", "color", "rmw", "tiny", "on", "mine")
    results = [
        Made("populate", {"by": "ldadd", "page": "4k", "size": 1 << 20}, arm, {"page_faults": n})
        for n, arm in enumerate(arms, 100)
    ]
    text = _text(_section(render(made_results.dataset(tmp_path, results)), "populate"))
    assert "ldadd 4k mine page_faults 106 +6.00 %" in text
    assert "ldadd 4k on page_faults 105 +5.00 % ✗ not reproduced" in text


def test_marks_come_from_the_arms_files_and_a_foreign_arm_gets_a_cross(tmp_path: Path) -> None:
    arms = ("stock", "rmw", "mine")
    results = [
        Made("programs", {"program": program}, arm, {"page_faults": 1 + n})
        for program in ("python", "sqlite")
        for n, arm in enumerate(arms)
    ]
    dataset = made_results.dataset(tmp_path, results)
    page = render(dataset)
    for name in ("stock", "rmw"):
        mark = dataset.catalog.arms[name].mark
        for color in (mark.light, mark.dark):
            assert f": {color};" in page
        kind = re.search(rf"--(m-\d): {mark.light};", page)
        assert kind
        rule = re.search(rf"^\.{kind[1]} .*$", page, flags=re.MULTILINE)
        assert rule and ("fill: var(--paper)" in rule[0]) == (not mark.filled)
        assert f'class="m {kind[1]}"' in page
    assert 'class="m m-foreign"' in page and ".m-foreign {" in page


def test_the_ways_of_the_machine_are_marked_where_it_is_known(tmp_path: Path) -> None:
    made = [
        Made(
            "set-conflict", {"n": n, "stride": 16384, "rounds": 10}, "stock",
            {"l1d_misses": 10 * n * (n > 4), "reads": 10 * n},
        )
        for n in range(1, 11)
    ]  # fmt: skip
    for machine, marked in (("neoverse-n1", True), ("pdp-11", False)):
        results = [replace(result, machine=machine) for result in made]
        page = render(made_results.dataset(tmp_path / machine, results))
        (picture, *_) = re.findall(r"<svg\b.*?</svg>", _section(page, "set-conflict"), re.DOTALL)
        assert ("l1d ways: 4" in picture) == marked
        assert "stock: 1 0, 2 0, 3 0, 4 0, 5 1, 6 1, 7 1, 8 1, 9 1, 10 1." in picture


def test_the_spread_of_a_sweep_is_given(page: str) -> None:
    text = _text(page)
    assert "arm least mean most hot_color stock 0.01 2.26 9 4 of 4" in text
    assert "color 2.25 2.25 2.25 4 of 4" in text


def test_a_mean_that_lacks_colours_is_marked(tmp_path: Path, folder: Path) -> None:
    results = [
        made_results.without_metrics(made, {"l2_misses": "not seen"})
        if made.arm == "color" and made.params["hot_color"] == 0
        else made
        for made in made_results.plan(folder, ["zero-conflict"], level="l2")
    ]
    text = _text(render(made_results.dataset(tmp_path, results, folder)))
    assert "stock 0.01 2.26 9 4 of 4" in text
    assert "color 2.25 ≈ 2.25 2.25 3 of 4" in text


def test_an_experiment_without_results_says_so_and_names_the_command(
    tmp_path: Path, folder: Path
) -> None:
    results = made_results.plan(folder, ["populate"], page="4k")
    dataset = made_results.dataset(tmp_path, results, folder)
    text = _text(render(dataset))
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
    text = _text(render(made_results.dataset(tmp_path, results, folder)))
    assert "Not measured in these results: this kernel has no perf events." in text


def test_what_is_unavailable_is_listed_with_its_reason_and_never_drawn_as_zero(page: str) -> None:
    text = _text(page)
    assert "this CPU has no CASP" in text
    # One reason for several metrics appears once and names each of them.
    assert "no model of them" in text
    faults = _section(page, "populate")
    assert faults.count("not measured</text>") == 2 * 3


def test_a_difference_from_nothing_is_no_multiple(page: str) -> None:
    assert "0 on stock</text>" in _section(page, "fork-exit")


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
        "off, color, color-l2, rmw, on, ahead, ahead-madvise": "b" * 64,
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
    assert file.stat().st_size < 50_000 * len(experiment_names())
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_it_says_how_many_guests_were_audited(tmp_path: Path, dataset: Dataset) -> None:
    twice = Audited("ab", "populate", ("one", "two"))
    Record(audited=[twice, twice]).write(tmp_path)
    assert (
        "2 guests ran twice and gave the same bytes" in write_report(dataset, tmp_path).read_text()
    )
    Record().write(tmp_path)
    assert "ran twice" not in write_report(dataset, tmp_path).read_text()


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


def test_a_parameter_that_is_a_size_in_words_is_drawn(tmp_path: Path) -> None:
    """`heap = ["256M", "512M"]` is what an experiment's file may hold."""
    folder = made_results.experiments(tmp_path)
    file = folder / "openjdk-pretouch.toml"
    text = file.read_text().replace('heap = "512M"', 'heap = ["256M", "512M"]')
    file.write_text(text.replace('chart = "dumbbells"', 'chart = "lines"'))
    results = made_results.plan(folder, ["openjdk-pretouch"], java="21", collector="g1")
    section = _section(
        render(made_results.dataset(tmp_path / "out", results, folder)), "openjdk-pretouch"
    )
    assert "stock: 256 MiB 136,072, 512 MiB 267,144" in section


@pytest.mark.parametrize(
    ("low", "high", "most", "ticks"),
    [
        (0, 1, 5, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (1, 10, 14, list(range(1, 11))),
        (0, 7, 4, [0, 2, 4, 6]),
    ],
)
def test_ticks_are_round(low: float, high: float, most: int, ticks: list[float]) -> None:
    assert Scale(low, high, 0, 100).ticks(most) == ticks


def test_values_far_apart_get_a_logarithmic_axis_with_a_place_for_zero() -> None:
    assert not scale_for([1, 20], 0, 100).logarithmic
    scale = scale_for([0, 1, 1000], 10, 100)
    assert scale.logarithmic
    assert scale.at(0) == 10 < scale.at(1) < scale.at(1000) == 100
    assert [round_up(value) for value in (0.3, 1, 1.1, 3, 70)] == [0.5, 1, 2, 5, 100]


def test_notes_stand_on_the_page(tmp_path: Path) -> None:
    ours = _populate(page="4k")
    directory = made_results.write(tmp_path, [replace(ours[0], experiment="fork-cost"), *ours])
    file = directory / "results.jsonl"
    file.write_text(file.read_text()[:-40])
    dataset = read_dataset(directory)
    text = _text(render(dataset))
    assert len(dataset.notes) == 2
    assert "has 1 line that is cut off or not a result" in text
    assert "experiments/fork-cost.toml is missing: 1 of its results" in text
    assert "2 faults on the stock kernel" in text


def _populate(**only: str) -> list[Made]:
    return made_results.plan(EXPERIMENTS, ["populate"], **only)
