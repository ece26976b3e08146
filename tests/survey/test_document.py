# SPDX-License-Identifier: GPL-2.0
"""survey.json: its documented keys, and nothing that was measured is lost."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from firsttouch.survey.document import read_survey, write_survey
from firsttouch.survey.findings import examine
from firsttouch.survey.samples import Sample, Survey
from firsttouch.survey.sentences import conclude
from firsttouch.survey.tasks import Task
from firsttouch.tables import Table, parse_json
from tests.support.surveys import RECORDED, recorded

TASK = Task("touch base store", ("populate", "--by", "store"))


def _write(survey: Survey, file: Path) -> Table:
    findings = examine(survey)
    write_survey(file, survey, findings, conclude(findings))
    return parse_json(file.read_text(), file)


@pytest.mark.parametrize("name", ["stock", "x86-64"])
def test_a_survey_is_read_back_as_it_was_written(tmp_path: Path, name: str) -> None:
    survey, file = recorded(name), tmp_path / "survey.json"
    _write(survey, file)
    assert read_survey(file) == survey


@pytest.mark.parametrize(
    ("name", "kind"), [("stock", "guest"), ("on", "guest"), ("x86-64", "machine")]
)
def test_the_documented_keys(tmp_path: Path, name: str, kind: str) -> None:
    survey = dataclasses.replace(recorded(name), tasks=(TASK,))
    written = _write(survey, tmp_path / "survey.json")
    assert written.take("schema", int) == 1
    assert written.table("tasks").values_of(str) == {
        "touch base store": "ftbench populate --by store"
    }
    before = parse_json((RECORDED / f"survey-{name}.json").read_text(), name)
    assert written.table("where").rest() == before.table("where").rest()
    assert written.table("where").take("kind", str) == kind
    # Of the facts, the recorded surveys lack two keys and have one that is no longer read.
    facts = {key: value for key, value in before.table("facts").rest().items()
             if key != "zero_page_colors"}  # fmt: skip
    assert written.table("facts").rest() == {"nr_hugepages": None, "fault_ahead": None, **facts}
    assert written.objects("samples") == before.objects("samples")
    touches = {(t.take("kind", str), t.take("page", str)): t
               for t in written.table("findings").tables("touches")}  # fmt: skip
    store = touches["store", "base"]
    assert store.take("faults", float) == 1
    assert set(store.table("busy").numbers()) == {"median", "spread", "samples"}
    assert written.tables("sentences")[0].take("about", str) == "verdict"


def test_each_sample_has_a_line_of_its_own(tmp_path: Path) -> None:
    survey, file = recorded("stock"), tmp_path / "survey.json"
    failed = Sample("touch base cas", 4, None, "ended with status 3")
    _write(dataclasses.replace(survey, samples=(*survey.samples, failed)), file)
    lines = [line for line in file.read_text().splitlines() if line.startswith('  {"task"')]
    assert len(lines) == len(survey.samples) + 1
    assert json.loads(lines[-1]) == {
        "task": "touch base cas", "round": 4, "line": None, "error": "ended with status 3",
    }  # fmt: skip
