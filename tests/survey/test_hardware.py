# SPDX-License-Identifier: GPL-2.0
"""Surveys of real machines as figures of the report."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from firsttouch.analysis.dataset import make_dataset
from firsttouch.catalog.arms import arm_names
from firsttouch.catalog.collection import load_catalog
from firsttouch.errors import UserError
from firsttouch.lab.times import (
    FILE_NAME,
    Boot,
    Host,
    Sample,
    TimedArm,
    TimedCell,
    Times,
    write_times,
)
from firsttouch.output.html.page import render
from firsttouch.places import HARDWARE
from firsttouch.survey.hardware import hardware_figures
from firsttouch.vm.kvm import Condition
from tests.support.surveys import RECORDED

_CATALOG = load_catalog((), (), arm_names())


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A folder with a machine that was surveyed before and after."""
    for name, recorded in (("before", "stock"), ("after", "on")):
        file = tmp_path / "hardware/board" / name / "survey.json"
        file.parent.mkdir(parents=True)
        shutil.copy(RECORDED / f"survey-{recorded}.json", file)
    return tmp_path / "hardware"


def test_a_machine_has_its_times_with_and_without_the_features(machine: Path) -> None:
    (figure,) = hardware_figures(machine, _CATALOG)
    assert figure.heading.startswith("board: ")
    assert figure.table is not None
    assert figure.table.head == ("first touch by", "stock", "exclusive")
    rows = {name: cells for name, *cells in figure.table.rows}
    assert all(cell.endswith("1.00 faults") for cell in rows["store"])
    before, after = rows["ldadd"]
    assert re.fullmatch(r"[\d,]+ ± [\d,]+ ns, 2.00 faults", before)
    assert re.fullmatch(r"[\d,]+ ± [\d,]+ ns, 1.00 faults", after)
    assert "ldadd" in figure.wide.description


def test_what_is_no_survey_is_refused(machine: Path) -> None:
    (machine / "board/after/survey.json").write_text("{}")
    with pytest.raises(UserError, match=r"after/survey\.json"):
        hardware_figures(machine, _CATALOG)


def test_each_machine_of_the_project_can_be_drawn() -> None:
    surveys = list(HARDWARE.glob("*/**/survey.json"))
    times = list(HARDWARE.glob(f"*/**/{FILE_NAME}"))
    drawn = hardware_figures(HARDWARE, _CATALOG)
    surveyed = {file.relative_to(HARDWARE).parts[0] for file in surveys}
    assert len(drawn) == len(surveyed) + len(times)


def test_times_that_were_sent_are_drawn(tmp_path: Path) -> None:
    quiet = Condition(0.1, 2_400_000, "performance", 0)
    boots = tuple(
        Boot(number, arm, "0x1", 4.0, quiet, (Sample(0, {"elapsed_ns": time + number}, {}),))
        for number in range(1, 9)
        for arm, time in (("stock", 2e6), ("again", 2e6), ("on", 1e6))
    )
    write_times(tmp_path / "board", Times(
        "plan", "6.12", "6.12.1", "QEMU", Host("Arm Cortex-A76", "6.6", ("3",), quiet),
        tuple(TimedArm(name, "a" * 64, "") for name in ("stock", "again", "on")),
        (TimedCell("populate", {"by": "ldadd", "size": 4096}, "populate"),),
        boots,
    ))  # fmt: skip
    (figure,) = hardware_figures(tmp_path, _CATALOG)
    assert "on against stock: 1 of 1 cells take less time" in figure.caption
    assert figure.table
    assert figure.table.rows[0] == (
        "populate 4 KiB", "+0.0 % (+0.0 to +0.0) none", "-50.0 % (-50.0 to -50.0)",
    )  # fmt: skip
    page = render(make_dataset((), _CATALOG), [figure])
    assert "Times on Arm Cortex-A76" in page
    (tmp_path / "board/hardware.json").write_text('{"schema": 7}')
    with pytest.raises(UserError, match=r"board/hardware\.json has schema 7"):
        hardware_figures(tmp_path, _CATALOG)


def test_the_page_shows_real_machines_only_where_there_are_some(machine: Path) -> None:
    dataset = make_dataset((), _CATALOG)
    assert 'id="hardware"' not in render(dataset)
    page = render(dataset, hardware_figures(machine, _CATALOG))
    section = re.search(r'<section id="hardware">.*?</section>', page, re.S)
    assert section
    assert "board: " in section[0]
    assert section[0].count("<svg") == 2
