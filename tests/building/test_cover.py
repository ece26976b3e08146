# SPDX-License-Identifier: GPL-2.0
"""Cover letters are plain text that fits a mail and a maintainer's patience."""

from __future__ import annotations

import re

import pytest

from firsttouch.building.overlay import all_series

_COVERS = {name: series.cover for name, series in all_series().items() if series.cover}
# What a maintainer reads: the longest line, and the lines of a letter.
_WIDTH, _LINES = 72, 60


@pytest.mark.parametrize("name", _COVERS)
def test_cover_letter_is_short_plain_text(name: str) -> None:
    _, _, text = _COVERS[name].read_text().partition("-->\n")
    # An address cannot be broken.
    long = [line for line in text.splitlines() if len(line) > _WIDTH and "https://" not in line]
    assert not long
    assert not re.search(r"\]\(|`|\{|<!--|\| ---", text)
    assert len(text.splitlines()) <= _LINES
