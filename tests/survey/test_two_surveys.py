# SPDX-License-Identifier: GPL-2.0
"""Surveys as documents, and two of them compared."""

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from firsttouch.cli.main import main
from firsttouch.errors import UserError
from firsttouch.lab.results import write_results
from firsttouch.survey.document import read_survey, write_survey
from firsttouch.survey.findings import examine
from firsttouch.survey.printing import compare_surveys
from firsttouch.survey.tasks import Survey
from firsttouch.views.comparison import Comparison, print_comparison
from tests.support.golden import Golden
from tests.support.results import make_result
from tests.support.surveys import HOST, SLOWER, TWICE, made, recorded

_STOCK = made(HOST, TWICE, SLOWER)
_ON = made(replace(HOST, kernel="6.12-on", write_intent="exclusive"))


def _compared(a: Survey, b: Survey) -> Comparison:
    return compare_surveys(examine(a), examine(b))


@pytest.mark.parametrize("survey", [recorded(), _ON, replace(_STOCK, interrupted=True)])
def test_a_survey_is_read_back_as_it_was_written(tmp_path: Path, survey: Survey) -> None:
    write_survey(tmp_path, survey)
    assert read_survey(tmp_path) == survey


def test_two_surveys_side_by_side(golden: Golden) -> None:
    output = io.StringIO()
    print_comparison(_compared(_STOCK, _ON), Console(file=output, width=100), "a", "b")
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
        assert not comparison.differences
        return sum(line.changed for line in comparison.lines)

    assert (changed(1), changed(1.04)) == (0, 0)
    assert changed(2) >= 10


def test_surveys_without_a_common_figure_are_not_compared() -> None:
    with pytest.raises(UserError, match="no figure in common"):
        _compared(recorded(), replace(recorded(), samples=()))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory with surveys in `a` and `b`, and counts next to one in `both`."""
    for name, survey in (("a", _STOCK), ("b", _ON), ("both", _STOCK)):
        (tmp_path / name).mkdir()
        if name == "both":
            write_results(tmp_path / name, [make_result()])
        write_survey(tmp_path / name, survey)
    return tmp_path


@pytest.mark.parametrize("a", ["a/results.jsonl", "both"])
def test_compare_takes_files_and_directories(
    folder: Path, a: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", "--json", str(folder / a), str(folder / "b")]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {each["what"] for each in document["differences"]} == {"kernel", "write intent"}
    figures = {(each["what"], each["metric"]): each for each in document["figures"]}
    assert figures["ldxr, 4 KiB", "faults per page"]["change_percent"] == -50
    assert not figures["store, 4 KiB", "faults per page"]["changed"]
