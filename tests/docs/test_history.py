# SPDX-License-Identifier: GPL-2.0
"""Changes whose outcome is known: each has its patch and its counts, and counts the same again."""

from pathlib import Path

import pytest

from docs.evidence.draw.history import Change, count_again, load_history, read_counted
from docs.evidence.draw.sets import EVIDENCE

_CHANGES = load_history()


def test_each_has_a_patch_and_counts() -> None:
    counted = read_counted()
    assert set(counted) == {change.name for change in _CHANGES}
    patches = {file.stem for file in (EVIDENCE / "history").glob("*.patch")}
    assert patches == {change.name for change in _CHANGES}
    for change in _CHANGES:
        assert change.patch().is_file()
        assert len(counted[change.name]) == len(change.shows) > 0


@pytest.mark.regress
@pytest.mark.parametrize("change", _CHANGES, ids=lambda change: change.name)
def test_each_counts_the_same_again(change: Change, tmp_path: Path) -> None:
    """Ticks fall elsewhere if another QEMU or compiler is here; what a change does stays."""
    for again, before in zip(
        count_again(change, tmp_path), read_counted()[change.name], strict=True
    ):
        assert again == pytest.approx(before, rel=0.01, abs=30)
