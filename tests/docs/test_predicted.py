# SPDX-License-Identifier: GPL-2.0
"""What traces predicted beside what was measured: the file, and what is said of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.evidence.draw.declared import load_evidence
from docs.evidence.draw.in_guests import tried_in_guests
from docs.evidence.draw.packed import traces_file
from docs.evidence.draw.predicted import (
    ADVISED,
    NEAR,
    PREDICTED,
    Program,
    Tried,
    draw_kinds,
    draw_predicted,
    draw_usual,
    keep_predicted,
    load_declared,
    read_predicted,
)
from firsttouch.errors import UserError
from firsttouch.finder.kinds import NAMES

_FOLDER = load_evidence().folder


@pytest.mark.parametrize("name", [PREDICTED, ADVISED])
def test_what_is_far_off_has_its_reason_and_nothing_else_has(name: str) -> None:
    programs = read_predicted(traces_file(_FOLDER, name))
    far = {
        f"{program.name}: {tried.remedy}"
        for program in programs
        for tried in program.tried
        if abs(tried.off) > NEAR
    }
    declared = load_declared(_FOLDER)
    assert far == set(declared.reasons if name == PREDICTED else declared.advised)
    assert set(declared.scripts) <= {program.name for program in programs}
    assert sum(bool(program.tried) for program in programs) >= 10
    assert {kind for program in programs for kind in program.kinds} <= set(NAMES)


def test_what_is_far_off_in_guests_has_its_reason_and_nothing_else_has() -> None:
    evidence = load_evidence()
    (block,) = (each for each in evidence.blocks.values() if each.kind == "in-guests")
    tried = list(tried_in_guests(block, {name: evidence.dataset(name) for name in block.sets}))
    far = {f"{name}: {each.remedy}" for name, _, each in tried if abs(each.off) > NEAR}
    assert far == set(load_declared(_FOLDER).guests)
    assert len(tried) == 2 * len({name for name, *_ in tried}) > 80


def test_programs_are_kept_and_drawn(tmp_path: Path) -> None:
    programs = [
        Program("a", "6.12", {"again": 30, "file": 70}, (Tried("keep", "X=1", 70, 63),)),
        Program("b", "6.12", {"file": 100}, ()),
    ]
    file = tmp_path / "predicted.json.xz"
    keep_predicted(file, programs)
    assert read_predicted(file) == programs
    drawn = draw_predicted(programs, {})
    assert "| a | keep | 100 | 70 | 63 | -10.0 % |  |" in drawn
    assert "1 of 1 are at most 10 % off" in drawn
    assert "| all 2 | 200 | 15.0 % | 85.0 % |" in draw_kinds(programs)
    assert draw_usual(programs) == "file 85.0 %, again 15.0 %"


def test_a_file_that_is_missing_is_traced_again(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="make evidence TRACE=predicted"):
        read_predicted(traces_file(tmp_path, PREDICTED))
