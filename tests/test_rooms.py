# SPDX-License-Identifier: GPL-2.0
"""The picture of the rooms shows the imports that there are."""

from __future__ import annotations

import graphlib
import tomllib
import xml.etree.ElementTree as ET

import pytest

from firsttouch.places import REPOSITORY
from tests.support.rooms import PICTURE, Rooms, draw_rooms, read_rooms


def test_the_committed_picture_is_what_the_imports_give() -> None:
    drawn = draw_rooms(read_rooms())
    assert ET.fromstring(drawn).tag.endswith("svg")
    assert PICTURE.read_text() == drawn, "write it again: make pictures"


def test_the_order_is_that_of_the_contract() -> None:
    document = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    (contract,) = document["tool"]["importlinter"]["contracts"]
    *layers, ground = contract["layers"]
    rooms = read_rooms()
    assert rooms.ordered() == layers[::-1]
    assert set(rooms.ground) == set(ground.split(" : "))


def test_an_import_more_is_another_picture() -> None:
    rooms = read_rooms()
    more = Rooms({**rooms.imports, "output": rooms.imports["output"] | {"vm"}}, rooms.ground)
    assert draw_rooms(more) != draw_rooms(rooms)


def test_a_circle_has_no_picture() -> None:
    with pytest.raises(graphlib.CycleError):
        draw_rooms(Rooms({"vm": frozenset({"lab"}), "lab": frozenset({"vm"})}, ()))


def test_no_module_has_more_than_300_lines() -> None:
    modules = list((REPOSITORY / "firsttouch").rglob("*.py"))
    assert len(modules) > 100
    lines = {module: len(module.read_text().splitlines()) for module in modules}
    assert [module for module, count in lines.items() if count > 300] == []
