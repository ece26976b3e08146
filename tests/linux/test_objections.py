# SPDX-License-Identifier: GPL-2.0
"""Each objection in docs/objections.md is answered by something that exists."""

from __future__ import annotations

import re

import pytest

from tests.conftest import REPOSITORY

_ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (REPOSITORY / "docs/objections.md").read_text().splitlines()
    if line.startswith("| ") and not line.startswith("| objection")
]


def test_there_are_objections() -> None:
    assert len(_ROWS) >= 20


@pytest.mark.parametrize("row", _ROWS, ids=lambda row: row[0])
def test_the_answer_exists(row: list[str]) -> None:
    _, _, shown_by = row
    answers = re.findall(r"`([^`:]+)(?:: ([^`]+))?`", shown_by)
    assert answers
    for file, name in answers:
        (path,) = [*REPOSITORY.glob(file), *(REPOSITORY / "linux").rglob(file)]
        assert name in path.read_text(), f"{file} has no {name!r}"
