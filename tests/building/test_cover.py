# SPDX-License-Identifier: GPL-2.0
"""Cover letters are plain text that fits a mail, with figures of the release that is posted."""

from __future__ import annotations

import re

import pytest

from firsttouch.building.cover import WIDTH, cover_letter, plain_table
from firsttouch.building.overlay import all_series
from firsttouch.catalog.releases import release_names

_COVERS = [name for name, series in all_series().items() if series.cover]


@pytest.mark.parametrize("release", release_names())
@pytest.mark.parametrize("name", _COVERS)
def test_a_cover_letter_is_plain_text_of_one_release(name: str, release: str) -> None:
    cover = all_series()[name].cover
    assert cover
    text = cover_letter(cover, release)
    # An address cannot be broken.
    long = [line for line in text.splitlines() if len(line) > WIDTH and "https://" not in line]
    assert not long
    assert not re.search(r"\]\(|`|\{|<!--|\| ---", text)
    assert {*re.findall(r"^- Linux (\d+\.\d+)", text, re.M)} == {release}


def test_a_table_has_narrow_columns_of_one_release() -> None:
    table = """\
|  | 6.12, stock | 7.3, stock | 7.3 change, `on` |
| --- | ---: | ---: | ---: |
| a read | 10 | 2,000 | +1 % |
|  | 1 | 3 | 0 |"""
    assert (
        plain_table(table.splitlines(), "7.3")
        == """\
               change,
        stock       on
a read  2,000     +1 %
            3        0"""
    )
