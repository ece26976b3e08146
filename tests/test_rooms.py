# SPDX-License-Identifier: GPL-2.0
"""The picture of the rooms shows the imports that there are."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from tests.support.rooms import PICTURE, draw_rooms, read_rooms


def test_the_committed_picture_is_what_the_imports_give() -> None:
    drawn = draw_rooms(read_rooms())
    assert ET.fromstring(drawn).tag.endswith("svg")
    assert PICTURE.read_text() == drawn, "write it again: make pictures"
