# SPDX-License-Identifier: GPL-2.0
"""`firsttouch survey` as a user runs it, also with requests it cannot carry out."""

import os
import signal
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import pytest

from firsttouch.cli.main import main
from firsttouch.errors import UserError
from firsttouch.lab.results import read_results, write_results
from firsttouch.progress import Reporter
from firsttouch.survey import run
from firsttouch.survey.document import read_survey
from firsttouch.survey.findings import examine
from firsttouch.survey.run import run_rounds, survey_host
from firsttouch.survey.tasks import Sample, Task
from tests.conftest import Firsttouch
from tests.support.results import make_result

PAGE = os.sysconf("SC_PAGESIZE")


def test_another_architecture_is_refused(
    monkeypatch: pytest.MonkeyPatch, reporter: Reporter
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    with pytest.raises(UserError, match="riscv64: run the survey on x86-64 or arm64"):
        survey_host(5, reporter)


@pytest.mark.long
def test_a_survey_of_this_host(firsttouch: Firsttouch) -> None:
    done = firsttouch("survey", "--seconds", "10", "--out", "here")
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 100
    assert done.stdout.startswith(("This host is affected", "This host is not affected"))
    # Progress is for people and goes elsewhere.
    assert "Surveying" in done.stderr and "Surveying" not in done.stdout
    findings = examine(read_survey(firsttouch.directory / "here"))
    assert (findings.host.page_size, findings.interrupted) == (PAGE, False)
    faults = {touch.kind: touch.faults for touch in findings.touches if touch.page == "base"}
    assert faults["store"] == faults["madvise"] == 1 and faults["load-store"] == 2
    assert all(touch.busy or touch.unavailable for touch in findings.touches)
    for found in findings.conflicts:
        if found.cache.level == "l1d" and found.conflict and found.hit:
            assert found.conflict.median > found.hit.median
    assert firsttouch("report", "here").stdout in done.stdout


def test_a_survey_that_is_interrupted_at_once_keeps_nothing(firsttouch: Firsttouch) -> None:
    process = firsttouch.start("survey", "--seconds", "3600")
    assert process.stderr is not None
    while "Surveying" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, rest = process.communicate(timeout=30)
    assert process.returncode == 130
    (sentence,) = (line for line in rest.splitlines() if line.startswith("firsttouch: "))
    assert sentence == "firsttouch: interrupted."
    assert not out
    assert not list((firsttouch.directory / "out").glob("[!.]*"))


def test_an_interrupted_survey_keeps_what_was_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(
        ftbench: Path, tasks: Sequence[Task], seconds: float
    ) -> Iterator[tuple[Sample, float]]:
        yield from islice(run_rounds(ftbench, tasks, seconds), 2)
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "run_rounds", interrupted)
    monkeypatch.chdir(tmp_path)
    assert main(["survey", "--seconds", "3600"]) == 130
    printed = capsys.readouterr()
    first = " ".join(printed.out.split("\n\n")[0].split())
    assert "unknown whether this host is affected: the survey was interrupted" in first
    assert "interrupted; the samples so far are printed and kept" in printed.err
    survey = read_survey(Path("out"))
    assert survey.interrupted
    assert {s.task for s in survey.samples} == {"touch base store", "touch base load-store"}
    assert [file.name for file in Path("out").glob("[!.]*")] == ["results.jsonl"]


def test_a_survey_of_selected_cells_leaves_other_results(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_results(Path("out"), [counted := make_result()])
    words = ["survey", "--seconds", "5", "--experiment", "populate", "--set", "by=store"]
    assert main([*words, "--set", "page=base"]) == 0
    assert {task.name for task in read_survey(Path("out")).tasks} == {"touch base store"}
    assert read_results(Path("out")) == (counted,)
    assert main([*words, "--set", "page=none"]) == 2
    assert "no cell of the survey is selected" in capsys.readouterr().err
