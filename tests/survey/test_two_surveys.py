# SPDX-License-Identifier: GPL-2.0
"""Surveys as documents, and two of them compared."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from firsttouch.cli.main import main
from firsttouch.errors import UserError
from firsttouch.survey.document import read_survey, write_survey
from firsttouch.survey.findings import examine
from firsttouch.survey.samples import Survey
from firsttouch.survey.two_surveys import compare_surveys
from firsttouch.views.comparison import Comparison, print_comparison
from tests.support.golden import Golden
from tests.support.surveys import HOST, SLOWER, TWICE, made, recorded

_STOCK = made(HOST, TWICE, SLOWER)
_ON = made(replace(HOST, kernel="6.12-on", write_intent="exclusive"))


def _compared(a: Survey, b: Survey) -> Comparison:
    return compare_surveys(examine(a), examine(b))


@pytest.mark.parametrize("survey", [recorded(), _ON, replace(_STOCK, interrupted=True)])
def test_a_survey_is_read_back_as_it_was_written(tmp_path: Path, survey: Survey) -> None:
    file = tmp_path / "survey.json"
    write_survey(file, survey)
    assert read_survey(file) == survey
    document = json.loads(file.read_text())
    assert document["sentences"][0]["about"] == "verdict"
    assert set(document["findings"]) == {
        "touches", "conflicts", "noisy", "few", "failures", "interrupted",
    }  # fmt: skip
    lines = [line for line in file.read_text().splitlines() if line.startswith('  {"task"')]
    assert len(lines) == len(survey.samples)


def test_two_surveys_side_by_side(golden: Golden) -> None:
    output = io.StringIO()
    print_comparison(_compared(_STOCK, _ON), "a", "b", Console(file=output, width=100))
    golden("\n".join(map(str.rstrip, output.getvalue().splitlines())))


def test_noise_is_no_change_and_more_than_noise_is() -> None:
    def changed(factor: float) -> int:
        slower = [
            replace(
                sample,
                metrics={
                    name: value * factor if name.endswith("_ns") else value
                    for name, value in sample.metrics.items()
                },
            )
            for sample in recorded().samples
        ]
        comparison = _compared(recorded(), replace(recorded(), samples=tuple(slower)))
        assert comparison.kind == "same"
        return sum(line.changed for line in comparison.lines)

    assert (changed(1), changed(1.04)) == (0, 0)
    assert changed(2) >= 10


def test_surveys_without_a_common_figure_are_not_compared() -> None:
    with pytest.raises(UserError, match="no figure in common"):
        _compared(recorded(), replace(recorded(), samples=()))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory with surveys in `a` and `b`, results beside one in `lab`, and `empty`."""
    for name, survey in (("a", _STOCK), ("b", _ON), ("lab", _STOCK)):
        (tmp_path / name).mkdir()
        write_survey(tmp_path / name / "survey.json", survey)
    (tmp_path / "lab/results.jsonl").touch()
    (tmp_path / "empty").mkdir()
    return tmp_path


@pytest.mark.parametrize(("a", "b"), [("a/survey.json", "b"), ("lab", "b")])
def test_compare_takes_files_and_directories(
    folder: Path, a: str, b: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", "--json", str(folder / a), str(folder / b)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["kind"] == "comparable"
    figures = {(each["what"], each["metric"]): each for each in document["figures"]}
    assert figures["ldxr, 4 KiB", "faults a page"]["change_percent"] == -50
    assert not figures["store, 4 KiB", "faults a page"]["changed"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"schema": 7}', "schema is 7, but this firsttouch reads 2: survey again"),
        ("{}", "survey.json is cut off or no survey"),
        ('{"schema": 2, "host"', "survey.json is cut off or no survey"),
        ("\udcff", "survey.json is cut off or no survey"),
        (None, "is a survey, but"),
    ],
)
def test_another_file_is_refused(
    folder: Path, text: str | None, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if text is None:
        (folder / "b/survey.json").unlink()
    else:
        (folder / "b/survey.json").write_bytes(text.encode(errors="surrogateescape"))
    assert main(["compare", str(folder / "a"), str(folder / "b")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert sentence in line
