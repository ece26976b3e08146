# SPDX-License-Identifier: GPL-2.0
"""Tables read into dataclasses: each type of field, and what is said of a wrong value."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import pytest

from firsttouch.errors import UserError
from firsttouch.tables import Fields, Json, read


@dataclass(frozen=True)
class _Part:
    name: str
    size: int | None


@dataclass(frozen=True)
class _Whole:
    title: str
    share: float
    parts: tuple[_Part, ...]
    first: _Part
    where: Mapping[str, str | int]
    counts: Mapping[str, int]
    kind: Literal["old", "new"] = "old"
    words: tuple[str, ...] = ()
    shown: bool = False
    path: object = None


_GIVEN: dict[str, Json] = {
    "title": "a", "share": 1, "parts": [{"name": "b", "size": 2}, {"name": "c"}],
    "first": {"name": "d", "size": None}, "where": {"by": "e", "size": 3}, "counts": {"f": 4},
}  # fmt: skip


def _read(**more: Json) -> _Whole:
    return read(Fields("file", {**_GIVEN, **more}), _Whole, path="given")


def test_each_field_is_read() -> None:
    parts = (_Part("b", 2), _Part("c", None))
    first, counts = _Part("d", None), {"f": 4}
    where: dict[str, str | int] = {"by": "e", "size": 3}
    assert _read() == _Whole("a", 1.0, parts, first, where, counts, path="given")
    assert _read(kind="new", words=["g"], shown=True) == _Whole(
        "a", 1.0, parts, first, where, counts, "new", ("g",), True, "given"
    )


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"title": 1}, "file: title is 1: it must be a string"),
        ({"kind": "nwe"}, "file: kind is 'nwe': did you mean 'new'"),
        ({"parts": [{"name": "b"}, {"size": 1}]}, r"file: parts\[1\].name is missing"),
        ({"parts": [{"nam": "b"}]}, r"parts\[0\].name is missing \('nam' is not a key here\)"),
        ({"first": {"name": "d", "color": 1}}, "file: first.color is not a key here"),
        ({"counts": {"f": "4"}}, "file: counts.f is '4': it must be a whole number"),
        ({"shonw": True}, "file: shonw is not a key here: did you mean 'shown'"),
        ({"path": "there"}, "file: path is not a key here"),
    ],
)
def test_a_wrong_value_is_named(more: dict[str, Json], message: str) -> None:
    with pytest.raises(UserError, match=message):
        _read(**more)


def test_other_keys_may_be_there() -> None:
    table = Fields("file", {**_GIVEN, "other": 1, "first": {"name": "d", "other": 1}})
    assert read(table, _Whole, strict=False, path="given") == _read()
