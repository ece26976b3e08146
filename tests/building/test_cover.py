# SPDX-License-Identifier: GPL-2.0
"""Cover letters are plain text that fits a mail, with figures of the release that is posted."""

from __future__ import annotations

import re

import pytest

from firsttouch.building.cover import WIDTH, cover_letter, plain_table
from firsttouch.building.overlay import all_series
from firsttouch.catalog.releases import release_names

_ARMS = {"color-zero-page": "color", "write-intent": "rmw"}
_COVERS = [name for name, series in all_series().items() if series.cover]


@pytest.mark.parametrize("name", _COVERS)
def test_a_cover_letter_is_plain_text_of_the_posted_release_and_series(name: str) -> None:
    cover = all_series()[name].cover
    assert cover
    text = cover_letter(cover)
    # An address cannot be broken.
    long = [line for line in text.splitlines() if len(line) > WIDTH and "https://" not in line]
    assert not long
    assert not re.search(r"\]\(|`|\{|<!--|\| ---", text)
    assert {*re.findall(r"^- Linux (\d+\.\d+)", text, re.M)} == {release_names()[-1]}
    if name != "fault-ahead":
        # Of a kernel with this series alone.
        assert set(re.findall(r"--arm (\S+)", text)) >= {"stock", f"{_ARMS[name]}-alone"}
        assert all(arm == "stock" or "-alone" in arm for arm in re.findall(r"--arm (\S+)", text))


def test_a_table_has_narrow_columns() -> None:
    table = """\
|  | stock | change, `on` |
| --- | ---: | ---: |
| a read | 2,000 | +1 % |
|  | 3 | 0 |"""
    assert (
        plain_table(table.splitlines())
        == """\
               change,
        stock       on
a read  2,000     +1 %
            3        0"""
    )
