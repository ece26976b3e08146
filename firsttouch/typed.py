# SPDX-License-Identifier: GPL-2.0
"""Reads a table into a dataclass, whose fields are the table's keys."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Literal, TypeVar, get_args, get_origin, get_type_hints

from firsttouch.tables import Table

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")


def read(table: Table, kind: type[T], *, strict: bool = True, **given: object) -> T:
    """Return the `kind`, a dataclass, in a table: a key for each field that is not `given`.

    A field may be a string, a number, true or false, one of the values of a
    Literal, a list of strings or of tables, a table of values, or a dataclass: a
    table. A key may be missing if its field has a default or can be None. If
    `strict`, no other key may be there. Raises UserError as `Table` does.
    """
    values = dict(given)
    for field, hint in _fields(kind):
        if field.name in given:
            continue
        if table.has(field.name) or not _has_default(field):
            values[field.name] = _value(table, field.name, hint, strict)
        else:
            # The key is known, and near to a typo perhaps.
            table.take(field.name, object, None)
    if strict:
        table.done()
    return kind(**values)


def _has_default(field: Field[object]) -> bool:
    return field.default is not MISSING or field.default_factory is not MISSING


@functools.cache
def _fields(kind: type[DataclassInstance]) -> list[tuple[Field[object], object]]:
    hints = get_type_hints(kind)
    return [(field, hints[field.name]) for field in fields(kind)]


def _value(table: Table, key: str, hint: object, strict: bool) -> object:
    """Return the value of `key`, which must be of the type `hint`."""
    inner = get_args(hint)
    if isinstance(hint, UnionType) and NoneType in inner:
        (some,) = set(inner) - {NoneType}
        present = table.take(key, object, None) is not None
        return _value(table, key, some, strict) if present else None
    if get_origin(hint) is Literal:
        return table.choice(key, inner)
    if get_origin(hint) is tuple:
        return table.strings(key) if inner[0] is str else tuple(
            read(entry, inner[0], strict=strict) for entry in table.tables(key)
        )  # fmt: skip
    if get_origin(hint) is Mapping:
        entries = table.table(key)
        if isinstance(inner[1], UnionType):
            return entries.scalars()
        return entries.numbers() if inner[1] is float else entries.values_of(inner[1])
    if not isinstance(hint, type):
        raise TypeError(f"{key}: no value of a table is a {hint}")
    if is_dataclass(hint):
        return read(table.table(key), hint, strict=strict)
    return table.take(key, hint)
