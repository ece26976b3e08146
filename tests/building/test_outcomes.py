# SPDX-License-Identifier: GPL-2.0
"""Stored outcomes of guests: a damaged one counts as missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from firsttouch.building.outcomes import keep_outcome, stored_outcome

_KEY = "ab" * 32


def test_what_is_kept_is_found_again_until_it_is_gone(own_cache: Path) -> None:
    assert stored_outcome(_KEY) is None
    keep_outcome(_KEY, {"commands": [{"lines": [{"a": 1}]}], "not_modelled": []})
    stored = stored_outcome(_KEY)
    assert stored is not None
    assert stored.objects("commands") == ({"lines": [{"a": 1}]},)
    assert stored_outcome("cd" * 32) is None
    (file,) = own_cache.glob("outcomes/*/*.json")
    file.unlink()
    assert stored_outcome(_KEY) is None


@pytest.mark.parametrize("damage", ["cut off", "changed", "empty", "not text"])
def test_what_was_damaged_is_not_there(own_cache: Path, damage: str) -> None:
    keep_outcome(_KEY, {"commands": [{"lines": [{"page_faults": 12345}]}]})
    (file,) = own_cache.glob("outcomes/*/*.json")
    match damage:
        case "cut off":
            file.write_text(file.read_text()[:-10])
        case "changed":
            file.write_text(file.read_text().replace("12345", "12346"))
        case "empty":
            file.write_text("")
        case "not text":
            file.write_bytes(b"\xff\xfe{")
    assert stored_outcome(_KEY) is None
    keep_outcome(_KEY, {"commands": []})
    assert stored_outcome(_KEY) is not None


def test_a_long_outcome_is_packed(own_cache: Path) -> None:
    outcome = {"commands": [{"lines": [{"recording": "0123456789abcdef" * 50_000}]}]}
    keep_outcome(_KEY, outcome)
    (file,) = own_cache.glob("outcomes/*/*.json")
    assert file.stat().st_size < 10_000
    stored = stored_outcome(_KEY)
    assert stored is not None and stored.rest() == outcome
    file.write_bytes(file.read_bytes()[:-10])
    assert stored_outcome(_KEY) is None
