# SPDX-License-Identifier: GPL-2.0
"""What the report says of results, and that it says what it cannot."""

from __future__ import annotations

import json
import re
import subprocess
import time
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from firsttouch.output.html import draw_report
from firsttouch.analysis.answers import answer
from firsttouch.analysis.claims import list_claims
from firsttouch.output.html.conflict import predicted_knee, sweep
from firsttouch.analysis.dataset import EXPERIMENTS, Dataset, Setting, read_dataset
from firsttouch.analysis.facts import off_costs, origins
from firsttouch.output.html.faults import faults_per_page
from firsttouch.output.html.scales import Scale, round_up, scale_for
from tests.conftest import Finished, Firsttouch
from tests.firsttouch import made_results

SETTING = Setting("6.12", "neoverse-n1")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return made_results.experiments(tmp_path)


@pytest.fixture
def full(tmp_path: Path, folder: Path) -> Path:
    """A directory with a result for every cell of the plan."""
    return made_results.write(tmp_path / "out", made_results.plan(folder))


@pytest.fixture
def dataset(full: Path, folder: Path) -> Dataset:
    return read_dataset(full, folder=folder)


def _page(directory: Path, folder: Path) -> str:
    return draw_report(directory, folder=folder).file.read_text()


def _text(page: str) -> str:
    """Return a page's words, without elements and style."""
    body = re.sub(r"<(style|svg)\b.*?</\1>", "", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body))


def test_the_answer_is_three_sentences_made_from_the_results(dataset: Dataset) -> None:
    claims = list_claims(dataset)
    faults, colors, price = answer(dataset, SETTING, claims)
    assert faults == (
        "The first touch of a 4 KiB page by an atomic add takes 2 faults on the stock kernel and "
        "1 with both features on (524,288 against 262,144 for 1 GiB, -50.00 %), with 262,144 "
        "against 0 TLB invalidations and -38.46 % of time in the kernel; that of a 2 MiB "
        "page takes 513 and 1."
    )
    assert "(arm color)" in colors
    assert "from 9 to 2.25 misses per round" in colors
    assert "the mean over hot colours from 2.26 to 2.25" in colors
    assert "a plain store by 0 % of kernel instructions" in price
    verdicts = [claim.verdict for claim in claims]
    for verdict in ("reproduced", "not reproduced"):
        assert f"{verdicts.count(verdict)} {verdict}" in price


def test_the_answer_says_what_was_not_measured(tmp_path: Path, folder: Path) -> None:
    results = made_results.plan(folder, ["zero-scan"])
    dataset = read_dataset(made_results.write(tmp_path / "out", results), folder=folder)
    sentences = answer(dataset, SETTING, list_claims(dataset))
    assert all("was not measured" in sentence for sentence in sentences)
    assert "`firsttouch lab --experiment zero-conflict`" in sentences[1]


def test_every_published_figure_is_in_the_claims_measured_or_not(
    tmp_path: Path, folder: Path, dataset: Dataset
) -> None:
    by_figure = {claim.figure: claim for claim in list_claims(dataset)}
    halved = by_figure["page faults halved"]
    assert (halved.stock, halved.other, halved.change) == ("524,288", "262,144", "-50.00 %")
    assert (halved.verdict, halved.sign) == ("reproduced", "✓")
    assert by_figure["system time -60 % (Ampere Altra VM)"].verdict == "not reproduced"

    few = made_results.write(tmp_path / "few", made_results.plan(folder, ["read-fault"]))
    again = {claim.figure: claim for claim in list_claims(read_dataset(few, folder=folder))}
    assert again.keys() == by_figure.keys()
    assert again["page faults halved"].verdict == "not measured"
    assert again["page faults halved"].command == (
        "firsttouch lab --experiment populate --set by=ldadd --set page=4k"
    )


def test_published_figures_that_are_no_change_are_quoted_and_lead_to_their_picture(
    tmp_path: Path,
) -> None:
    page = _page(made_results.write(tmp_path / "out", _real(page="4k")), EXPERIMENTS)
    assert "4,687,932 (126 times)" in page
    for anchor in re.findall(r'href="#([a-z-]+)"', page):
        assert f'<section id="{anchor}">' in page


def test_faults_are_per_page_of_the_size_asked_for(dataset: Dataset) -> None:
    case = dataset.find(SETTING, "populate", "page_faults", by="ldadd", page="64k")
    assert case is not None
    assert faults_per_page(case, "stock") == 17
    assert faults_per_page(case, "on") == 1


@pytest.mark.parametrize(
    ("machine", "stride", "knee"),
    # ThunderX2 is the postings' geometry; N1 has 4 ways of 16 KiB.
    [("thunderx2", 4096, 8), ("neoverse-n1", 16384, 4), ("neoverse-n1", 4096, 16)],
)
def test_the_knee_is_predicted_from_the_geometry(machine: str, stride: int, knee: int) -> None:
    assert predicted_knee(machine, stride)[0] == knee


def test_no_knee_is_predicted_for_an_unknown_machine() -> None:
    knee, why = predicted_knee("pdp-11", 4096)
    assert knee is None
    assert why.startswith("No knee is predicted: unknown machine 'pdp-11'")


def test_the_sweep_is_per_round_and_in_order_of_colour(dataset: Dataset) -> None:
    cases = [case for case in dataset.of(SETTING, "zero-conflict") if case.params["level"] == "l2"]
    series = sweep(list(reversed(cases)), "l2_misses")
    assert series["stock"] == [(0, 0.009), (1, 0.009), (2, 9), (3, 0.009)]
    assert series["color"] == [(color, 2.25) for color in range(4)]


def test_the_page_has_its_sections_in_order_and_a_command_under_each_figure(
    full: Path, folder: Path
) -> None:
    page = _page(full, folder)
    assert re.findall(r'<section id="([a-z-]+)"', page) == [
        "answer", "claims", "faults", "timeline", "set-conflict", "zero-conflict", "zero-scan",
        "off", "not-modelled", "provenance",
    ]  # fmt: skip
    assert "Not measured in these results" not in page
    figures = re.findall(r"<figure>.*?</figure>", page, flags=re.DOTALL)
    assert len(figures) == 8
    for figure in figures:
        assert re.search(r"<code>.*firsttouch lab.*--experiment.*--arm", figure)


def test_the_best_mean_and_worst_of_the_sweep_are_given(full: Path, folder: Path) -> None:
    text = _text(_page(full, folder))
    assert "arm best mean worst hot colours stock 0.01 2.26 9 4 of 4" in text
    assert "color 2.25 2.25 2.25 4 of 4" in text


def test_a_mean_that_lacks_colours_is_marked(tmp_path: Path, folder: Path) -> None:
    results = made_results.plan(folder, ["zero-conflict"], level="l2")
    for result in results:
        if result["arm"] == "color" and result["params"]["hot_color"] == 0:
            result["metrics"], result["reasons"] = {}, {"l2_misses": "not seen"}
    text = _text(_page(made_results.write(tmp_path / "out", results), folder))
    assert "stock 0.01 2.26 9 4 of 4" in text
    assert "color 2.25 ≈ 2.25 2.25 3 of 4" in text


def test_a_figure_without_results_says_so_and_names_the_command(
    tmp_path: Path, folder: Path
) -> None:
    results = made_results.plan(folder, ["populate"], page="4k")
    text = _text(_page(made_results.write(tmp_path / "out", results), folder))
    assert text.count("Not measured in these results.") == 5
    for name in ("fault-timeline", "set-conflict", "zero-conflict", "zero-scan", "switched-off"):
        assert f"To measure it: firsttouch lab --experiment {name}" in text


def test_faults_that_could_not_be_sampled_have_their_reason(tmp_path: Path, folder: Path) -> None:
    results = made_results.plan(folder, ["fault-timeline"])
    for result in results:
        result |= {"timeline": None, "timeline_absent": "this kernel has no perf events"}
    text = _text(_page(made_results.write(tmp_path / "out", results), folder))
    assert "Not measured in these results: this kernel has no perf events." in text


def test_what_is_unavailable_is_listed_with_its_reason_and_never_drawn_as_zero(
    full: Path, folder: Path
) -> None:
    page = _page(full, folder)
    assert "this CPU has no CASP" in _text(page)
    # One reason for several metrics, which names each of them, stands there once.
    assert "no model of them" in _text(page)
    assert page.count("not measured</text>") == 2 * 3


def test_the_cost_when_off_is_signed_and_per_page(dataset: Dataset) -> None:
    lines = {line.cell: line for line in off_costs(dataset)}
    store = lines["switched-off store 4k 256 MiB: instructions_kernel"]
    assert store.stock == "104,857,600 instructions"
    assert store.off == "104,923,136 instructions"
    assert (store.change, store.per_page) == ("+0.06 %", "+1 instructions")


def test_provenance_names_the_arms_where_they_differ(dataset: Dataset) -> None:
    images = {
        origin.of: origin.value for origin in origins(dataset) if origin.name == "kernel image"
    }
    assert images == {"stock": "a" * 64, "on, off, color, rmw": "b" * 64}
    assert [origin.of for origin in origins(dataset) if origin.name == "QEMU"] == [""]
    (machine,) = (origin for origin in origins(dataset) if origin.name == "machine neoverse-n1")
    assert "L1D 64 KiB, 4 ways of 16 KiB, LRU, 4 colours; L2 1 MiB, 8 ways" in machine.value


def test_the_same_results_give_the_same_bytes(full: Path, folder: Path) -> None:
    assert _page(full, folder) == _page(full, folder)


def test_the_report_of_the_whole_plan_is_small_and_soon_drawn(full: Path, folder: Path) -> None:
    started = time.monotonic()
    drawn = draw_report(full, folder=folder)
    assert time.monotonic() - started < 10
    assert drawn.file.stat().st_size < 1_500_000


def test_it_needs_nothing_beside_itself(full: Path, folder: Path) -> None:
    page = _page(full, folder)
    assert "<script" not in page
    assert "@import" not in page and "url(" not in page
    outside = set(re.findall(r"(?:https?:)?//[\w.]+[^\s\"<]*", page))
    # A namespace's name, which nothing fetches.
    assert outside == {"http://www.w3.org/2000/svg"}


def test_the_html_is_valid(full: Path, folder: Path) -> None:
    draw_report(full, folder=folder)
    done = subprocess.run(
        ["tidy", "-q", "-e", "--show-body-only", "no", full / "report.html"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_each_picture_is_well_formed_has_its_alternative_and_ids_of_its_own(
    full: Path, folder: Path
) -> None:
    page = _page(full, folder)
    pictures = re.findall(r"<svg\b.*?</svg>", page, flags=re.DOTALL)
    assert len(pictures) == 2 * 8
    for picture in pictures:
        root = ET.fromstring(picture)
        description = root.find("{http://www.w3.org/2000/svg}desc")
        assert root.get("role") == "img" and root.get("aria-label")
        assert description is not None and description.text
        assert root.get("aria-describedby") == description.get("id")
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_text_from_results_cannot_become_markup(tmp_path: Path, folder: Path) -> None:
    results = made_results.plan(folder, ["populate"], by="ldadd", page="4k")
    for result in results:
        result["machine"] = '<b>"&'
        result["provenance"]["qemu"] = "<script>alert(1)</script>"
    page = _page(made_results.write(tmp_path / "out", results), folder)
    assert "<script" not in page and "<b>&" not in page
    for picture in re.findall(r"<svg\b.*?</svg>", page, flags=re.DOTALL):
        assert '<b>"&' in (ET.fromstring(picture).get("aria-label") or "")


def test_newer_results_of_a_cell_replace_older_ones_unless_the_run_says_otherwise(
    tmp_path: Path, folder: Path
) -> None:
    (old,) = (made for made in made_results.plan(folder, ["read-fault"]) if made["arm"] == "stock")
    new = json.loads(json.dumps(old)) | {"cell": "newer"}
    new["metrics"]["page_faults"] = 1
    directory = made_results.write(tmp_path / "out", [old, new])

    def faults(*current: str) -> float | None:
        dataset = read_dataset(directory, current, folder)
        assert dataset.superseded == 1
        return dataset.cases[0].value("stock", "page_faults")

    assert faults() == 1
    assert faults("newer") == 1
    assert faults(old["cell"]) == 262144


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


def _refused(done: Finished, *fragments: str) -> None:
    assert done.returncode == 2, done.stderr
    (sentence,) = done.stderr.strip().splitlines()
    assert sentence.startswith("firsttouch: ") and sentence.endswith(".")
    for fragment in fragments:
        assert fragment in sentence


def _real(**only: Any) -> list[dict[str, Any]]:
    return made_results.plan(EXPERIMENTS, ["populate"], **only)


def test_a_directory_that_is_none_is_refused(firsttouch: Firsttouch, tmp_path: Path) -> None:
    _refused(firsttouch("report", tmp_path / "nowhere"), "is not a directory", "firsttouch lab")
    (tmp_path / "file").write_text("")
    _refused(firsttouch("report", tmp_path / "file"), "is not a directory")
    _refused(firsttouch("report", tmp_path), "results.jsonl cannot be read")


@pytest.mark.parametrize("text", ["", "\n", '{"schema": 1, "ce', "no results\n", "[]\n"])
def test_a_file_without_results_is_refused_and_nothing_is_written(
    firsttouch: Firsttouch, tmp_path: Path, text: str
) -> None:
    (tmp_path / "results.jsonl").write_text(text)
    _refused(firsttouch("report", tmp_path), "results.jsonl", "nothing is left to draw")
    assert not (tmp_path / "report.html").exists()


def test_another_schema_is_refused(firsttouch: Firsttouch, tmp_path: Path) -> None:
    made_results.write(tmp_path, [result | {"schema": 2} for result in _real(page="4k")])
    _refused(firsttouch("report", tmp_path), "is of schema 2", "reads schema 1")


def _drawn_with_a_word(done: Finished, directory: Path, *words: str) -> None:
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    text = _text((directory / "report.html").read_text())
    assert "2 faults on the stock kernel" in text
    for word in words:
        assert word in " ".join(done.stderr.split())
        assert word in text


def test_a_half_written_file_is_drawn_as_far_as_it_goes(
    firsttouch: Firsttouch, tmp_path: Path
) -> None:
    made_results.write(tmp_path, _real(page="4k"))
    file = tmp_path / "results.jsonl"
    file.write_text(file.read_text()[:-40])
    _drawn_with_a_word(
        firsttouch("report", tmp_path), tmp_path, "holds 1 line that is cut off or no result"
    )


def test_lines_of_another_schema_do_not_keep_ours_from_being_drawn(
    firsttouch: Firsttouch, tmp_path: Path
) -> None:
    ours = _real(page="4k")
    made_results.write(tmp_path, [ours[0] | {"schema": 2, "cell": "x"}, *ours])
    _drawn_with_a_word(firsttouch("report", tmp_path), tmp_path, "1 lines of schema 2")


def test_results_of_an_experiment_that_is_gone_are_left_out(
    firsttouch: Firsttouch, tmp_path: Path
) -> None:
    ours = _real(page="4k")
    made_results.write(tmp_path, [ours[0] | {"experiment": "fork-cost", "cell": "x"}, *ours])
    _drawn_with_a_word(
        firsttouch("report", tmp_path), tmp_path, "experiments/fork-cost.toml is missing"
    )


def test_whole_results_are_drawn_without_a_word(firsttouch: Firsttouch, tmp_path: Path) -> None:
    made_results.write(tmp_path, _real(page="4k"))
    done = firsttouch("report", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == str(tmp_path / "report.html")
