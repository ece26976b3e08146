# SPDX-License-Identifier: GPL-2.0
"""Two surveys compared: what differs, what changed, and what cannot be compared."""

from __future__ import annotations

import dataclasses
import io
import json
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from firsttouch.cli.main import main
from firsttouch.errors import UserError
from firsttouch.output.comparison import Comparison, Line, print_comparison
from firsttouch.survey.samples import Sample, Survey
from firsttouch.survey.two_surveys import compare_surveys, find_survey
from tests.support.golden import Golden
from tests.support.surveys import RECORDED, recorded


def _slower(survey: Survey, factor: float) -> Survey:
    """Return a survey whose processor times are `factor` times as long."""

    def slow(sample: Sample) -> Sample:
        if not sample.line or "sys_ns" not in sample.line.metrics:
            return sample
        metrics = dict(sample.line.metrics)
        for name in ("user_ns", "sys_ns"):
            metrics[name] *= factor
        return dataclasses.replace(sample, line=dataclasses.replace(sample.line, metrics=metrics))

    return dataclasses.replace(survey, samples=tuple(map(slow, survey.samples)))


def _figures(comparison: Comparison) -> dict[tuple[str, str], Line]:
    return {(str(line.of["what"]), str(line.of["metric"])): line for line in comparison.lines}


def _changed(comparison: Comparison) -> set[tuple[str, str]]:
    return {name for name, line in _figures(comparison).items() if line.changed}


def test_the_stock_kernel_against_the_changed_one(golden: Golden) -> None:
    comparison = compare_surveys(recorded("stock"), recorded("on"))
    golden("\n".join(comparison.sentences))
    figures = _figures(comparison)
    assert figures["ldxr, 4 KiB", "faults"].change_percent == -50
    assert not figures["store, 4 KiB", "faults"].changed


def test_a_survey_against_itself() -> None:
    comparison = compare_surveys(recorded("x86-64"), recorded("x86-64"))
    assert comparison.sentences[0].startswith("The same host, kernel and settings: 0 of ")
    assert not comparison.differences and not _changed(comparison)


def test_noise_is_no_change_and_more_than_noise_is() -> None:
    survey = recorded("x86-64")
    assert not _changed(compare_surveys(survey, _slower(survey, 1.04)))
    changed = _changed(compare_surveys(survey, _slower(survey, 2)))
    assert {("store, 4 KiB", "processor"), ("L1D", "hit"), ("L1D", "conflict")} <= changed


def test_another_host_is_compared_with_care() -> None:
    survey = recorded("x86-64")
    other = dataclasses.replace(survey, host=dataclasses.replace(survey.host, processor="other"))
    assert (
        compare_surveys(survey, other)
        .sentences[0]
        .startswith("Comparable with care: they differ in the processor; ")
    )


def test_instructions_and_time_are_not_compared() -> None:
    with pytest.raises(UserError, match=r"not comparable.*instructions"):
        compare_surveys(recorded("stock"), recorded("x86-64"))


def test_surveys_without_a_common_figure_are_not_compared() -> None:
    survey = recorded("x86-64")
    with pytest.raises(UserError, match="no figure in common"):
        compare_surveys(survey, dataclasses.replace(survey, samples=()))


@pytest.mark.parametrize("width", [50, 100])
def test_it_fits_the_terminal(width: int) -> None:
    comparison = compare_surveys(recorded("stock"), recorded("off"))
    output = io.StringIO()
    print_comparison(comparison, "stock", "off", Console(file=output, width=width))
    lines = output.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert "…" not in output.getvalue()
    assert "159,875" in output.getvalue()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory with a survey in `a`, one of a guest in `b`, and results in `lab`."""
    for name, file in (("a", "survey.json"), ("b", "survey-on.json"), ("lab", "survey.json")):
        (tmp_path / name).mkdir()
        source = "on" if name == "b" else "stock"
        shutil.copy(RECORDED / f"survey-{source}.json", tmp_path / name / file)
    (tmp_path / "lab/results.jsonl").touch()
    (tmp_path / "empty").mkdir()
    return tmp_path


def test_a_survey_is_found_by_its_file_or_directory(folder: Path) -> None:
    assert (
        find_survey(folder / "a")
        == find_survey(folder / "a/survey.json")
        == folder / "a/survey.json"
    )
    assert find_survey(folder / "b") == folder / "b/survey-on.json"
    assert find_survey(folder / "empty") is None


@pytest.mark.parametrize(
    ("a", "b"), [("a", "b"), ("a/survey.json", "b/survey-on.json"), ("lab", "b")]
)
def test_compare_takes_two_surveys(
    folder: Path, a: str, b: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", str(folder / a), str(folder / b)]) == 0
    assert "takes 2.00 page faults in A and 1.00 in B" in " ".join(capsys.readouterr().out.split())
    assert main(["compare", "--json", str(folder / a), str(folder / b)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["sentences"] and document["differences"] and document["figures"]


def test_a_survey_is_not_compared_with_something_else(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", str(folder / "a"), str(folder / "empty")]) == 2
    (sentence,) = capsys.readouterr().err.splitlines()
    assert "is a survey, but" in sentence
    (folder / "a/survey.json").write_text('{"schema": 7}')
    assert main(["compare", str(folder / "a"), str(folder / "b")]) == 2
    assert "schema is 7, but this firsttouch reads 1: survey again" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["{}", '{"schema": 1, "where"', "[]", "\udcff"])
def test_a_survey_that_was_damaged_is_said_to_be_one(
    folder: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "a/survey.json").write_bytes(text.encode(errors="surrogateescape"))
    assert main(["compare", str(folder / "a"), str(folder / "b")]) == 2
    (sentence,) = capsys.readouterr().err.splitlines()
    assert "survey.json is cut off or no survey" in sentence and "survey again" in sentence


def test_a_file_of_results_is_no_survey(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "lab/results.jsonl").touch()
    for other in ("lab", "lab/results.jsonl"):
        assert main(["compare", str(folder / "lab/results.jsonl"), str(folder / other)]) == 2
        (sentence,) = capsys.readouterr().err.splitlines()
        assert "results.jsonl is not a directory: give a directory that" in sentence
