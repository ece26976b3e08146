# SPDX-License-Identifier: GPL-2.0
"""Two result sets side by side: what may be compared, and what is then said."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from firsttouch.catalog.experiment_files import load_experiment
from firsttouch.errors import UserError
from firsttouch.output.comparison import Comparison, comparison_document, print_comparison
from firsttouch.output.two_results import compare
from firsttouch.places import EXPERIMENTS
from tests.support import made_results
from tests.support.made_results import Made


def _results(release: str = "6.12", size: int = 1 << 30) -> list[Made]:
    experiment = load_experiment("populate")
    return [
        made_results.result(experiment, {**params, "size": size}, arm, release)
        for params in experiment.combinations()
        if params["by"] in ("store", "ldadd") and params["page"] == "4k"
        for arm in ("stock", "on")
    ]


def _compared(tmp_path: Path, a: Sequence[Made], b: Sequence[Made]) -> Comparison:
    return compare(made_results.dataset(tmp_path / "a", a), made_results.dataset(tmp_path / "b", b))


def _with_digest(results: Sequence[Made], name: str) -> list[Made]:
    return [replace(made, digests={name: "9" * 64}) for made in results]


def test_the_same_cells_with_the_same_counts_are_the_same(tmp_path: Path) -> None:
    compared = _compared(tmp_path, _results(), _results())
    assert compared.kind == "same"
    assert (
        "4 cells" in compared.sentences[0] and "all 12 figures are equal" in compared.sentences[0]
    )
    assert len(compared.lines) == 12 and not compared.contradictory


def test_the_same_cells_with_other_counts_contradict_each_other(tmp_path: Path) -> None:
    other = [
        replace(made, metrics={**made.metrics, "page_faults": 1}) if made.arm == "on" else made
        for made in _results()
    ]
    compared = _compared(tmp_path, _results(), other)
    assert "2 of 12 figures differ: these runs were not identical" in compared.sentences[0]
    assert compared.contradictory
    assert {line.names[1:] for line in compared.lines if line.changed} == {("on", "page_faults")}


def test_another_release_is_comparable_and_its_changes_are_given(tmp_path: Path) -> None:
    cheaper = [
        replace(
            made,
            metrics={
                **made.metrics,
                "instructions_kernel": made.metrics["instructions_kernel"] / 2,
            },
        )
        for made in _with_digest(_results("7.3"), "kernel image")
    ]
    compared = _compared(tmp_path, _results(), cheaper)
    assert compared.kind == "comparable"
    # Another kernel has another image: the image is not reported as well.
    (difference,) = compared.differences
    assert (difference.what, difference.a, difference.b) == ("kernel", "6.12.1", "7.3.1")
    changes = {line.of["metric"]: line.change_percent for line in compared.lines}
    assert (changes["page_faults"], changes["instructions_kernel"]) == (0, -50)
    assert {line.of["release"] for line in compared.lines} == {"6.12 against 7.3"}
    assert not compared.contradictory


def test_another_machine_is_comparable(tmp_path: Path) -> None:
    other = [replace(made, machine="cortex-a72") for made in _results()]
    compared = _compared(tmp_path, _results(), _with_digest(other, "device tree"))
    assert compared.kind == "comparable" and "4 cells in common" in compared.sentences[0]
    assert [difference.what for difference in compared.differences] == ["machine"]


def test_another_build_of_the_same_kernel_is_comparable(tmp_path: Path) -> None:
    compared = _compared(tmp_path, _results(), _with_digest(_results(), "kernel image"))
    assert compared.kind == "comparable"
    assert {difference.what for difference in compared.differences} == {"kernel build"}


def test_another_source_explains_the_build_and_is_comparable(tmp_path: Path) -> None:
    other = [
        replace(made, digests={"kernel source": "9" * 64, "kernel image": "8" * 64})
        for made in _results()
    ]
    compared = _compared(tmp_path, _results(), other)
    assert compared.kind == "comparable"
    assert {difference.what for difference in compared.differences} == {"kernel source"}


@pytest.mark.parametrize("digest", ["ftbench", "PMU", "device tree", "disk", "initial RAM disk"])
def test_another_instrument_is_compared_with_care(tmp_path: Path, digest: str) -> None:
    compared = _compared(tmp_path, _results(), _with_digest(_results("7.3"), digest))
    named = {"PMU": "PMU"}.get(digest, digest)
    assert compared.kind == "with care"
    assert f"they differ in the kernel, {named}; " in compared.sentences[0]


def test_another_qemu_or_command_is_compared_with_care(tmp_path: Path) -> None:
    for named, other in (
        ("QEMU", [replace(made, qemu="10.0.2") for made in _results("7.3")]),
        ("guest's commands", [replace(made, commands=["/x"]) for made in _results("7.3")]),
    ):
        compared = _compared(tmp_path, _results(), other)
        assert compared.kind == "with care"
        assert f"they differ in the kernel, {named}; " in compared.sentences[0]


def test_programs_that_differ_explain_the_disk_that_they_are_in(tmp_path: Path) -> None:
    other = [
        replace(made, digests={"ftbench": "9" * 64, "initial RAM disk": "8" * 64})
        for made in _results()
    ]
    compared = _compared(tmp_path, _results(), other)
    assert {difference.what for difference in compared.differences} == {"ftbench"}


def test_cells_of_one_side_only_are_counted_and_left_out(tmp_path: Path) -> None:
    compared = _compared(tmp_path, _results(), _results()[:1])
    same, only = compared.sentences
    assert "1 cell made" in same and only == "3 cells are in A only and not compared."


def test_two_releases_on_one_side_are_compared_by_name(tmp_path: Path) -> None:
    compared = _compared(tmp_path, _results() + _results("7.3"), _results("7.3"))
    assert compared.kind == "same" and "4 cells made" in compared.sentences[0]
    assert compared.sentences[1:] == ("4 cells are in A only and not compared.",)


def test_the_terminal_says_first_whether_they_are_comparable(tmp_path: Path) -> None:
    sink = io.StringIO()
    compared = _compared(tmp_path, _results(), _results("7.3")[:3])
    print_comparison(compared, "a", "b", Console(file=sink, width=100))
    first, second, sentence, *_ = sink.getvalue().splitlines()
    assert (first, second) == ("A: a", "B: b")
    assert sentence.startswith("Comparable: 3 cells in common")
    assert "1 cell is in A only" in sink.getvalue()
    assert "populate  (6.12 against 7.3, neoverse-n1)" in sink.getvalue()
    assert "524,288" in sink.getvalue()
    assert max(map(len, sink.getvalue().splitlines())) <= 100
    assert "\x1b" not in sink.getvalue()


def test_json_is_for_programs(tmp_path: Path) -> None:
    compared = _compared(tmp_path, _results(), _results("7.3"))
    document = json.loads(json.dumps(comparison_document(compared)))
    assert (document["schema"], document["kind"]) == (2, "comparable")
    assert document["differences"] == [{"what": "kernel", "a": "6.12.1", "b": "7.3.1"}]
    assert len(document["figures"]) == len(compared.lines)
    line = document["figures"][0]
    assert (line["metric"], line["params"]["by"]) == ("page_faults", "store")
    assert line["a"] == line["b"] == 262144


@pytest.mark.parametrize(
    ("other", "fragment"),
    [
        (_results(size=1 << 26), "A has size 1 GiB and B 64 MiB"),
        (
            made_results.plan(EXPERIMENTS, ["read-fault"]),
            "A has experiment populate and B read-fault",
        ),
        ([replace(made, arm="rmw") for made in _results()], "A has arm on, stock and B rmw"),
    ],
    ids=["size", "experiment", "arm"],
)
def test_sets_with_nothing_in_common_are_refused(
    tmp_path: Path, other: list[Made], fragment: str
) -> None:
    with pytest.raises(UserError) as refused:
        _compared(tmp_path, _results(), other)
    sentence = str(refused.value)
    assert "not comparable: they have no cell in common" in sentence
    assert fragment in sentence
    assert sentence.endswith(".") and "\n" not in sentence
