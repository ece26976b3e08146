# SPDX-License-Identifier: GPL-2.0
"""TOML and JSON read strictly: an error names the file, the key and the nearest valid one.

Untyped data ends here: other modules get dataclasses by `read`, `Fields`, which checks the
type of each value, or `Json`.
"""

from __future__ import annotations

import difflib
import functools
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    TypeAlias,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

from firsttouch.errors import UserError, nearest
from firsttouch.files import users_folder
from firsttouch.quantities import parse_size

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

# A number of bytes, which TOML may have as a string such as "64K".
Bytes = Annotated[int, "bytes"]
Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"

T = TypeVar("T")
D = TypeVar("D", bound="DataclassInstance")
_REQUIRED: Any = object()
_NAMES = {str: "a string", int: "a whole number", float: "a number", bool: "true or false",
          list: "a list", dict: "a table"}  # fmt: skip


class Fields:
    """A table of `file`, a path or a description; keys that no reader takes are errors."""

    def __init__(self, file: Path | str, data: Mapping[str, Json], where: str = "") -> None:
        self.file, self.where, self._data = file, where, data
        self._taken: set[str] = set()

    def error(self, key: str, problem: str) -> UserError:
        """Return an error about `key`; `problem` completes the sentence."""
        return UserError(f"{self.file}: {self._name(key)} {problem}")

    def take(self, key: str, kind: type[T], default: T = _REQUIRED) -> T:
        self._taken.add(key)
        if key not in self._data:
            if default is _REQUIRED:
                typos = difflib.get_close_matches(key, set(self._data) - self._taken, n=1)
                hint = f" ({typos[0]!r} is not a key here)" if typos else ""
                raise self.error(key, f"is missing{hint}: add it.")
            return default
        value: Any = self._data[key]
        # A whole number is a number, too; true is neither.
        fits = isinstance(value, int | float if kind is float else kind)
        if not fits or (isinstance(value, bool) and kind in (int, float)):
            raise self.error(key, f"is {value!r}: it must be {_NAMES[kind]}.")
        checked: T = value
        return checked

    def strings(self, key: str) -> tuple[str, ...]:
        values = self.take(key, list)
        if not all(isinstance(value, str) for value in values):
            raise self.error(key, f"is {values!r}: it must be a list of strings.")
        return tuple(values)

    def optional(self, key: str, kind: type[T]) -> T | None:
        """Return the value of `key`; None if it is missing or null."""
        self._taken.add(key)
        return None if self._data.get(key) is None else self.take(key, kind)

    def choice(self, key: str, choices: Sequence[str]) -> str:
        value = self.take(key, str)
        if value not in choices:
            raise self.error(key, f"is {value!r}: {nearest(value, choices)}")
        return value

    def table(self, key: str) -> Fields:
        """Return the table at `key`; an empty one if it is missing."""
        return Fields(self.file, self.take(key, dict, {}), self._name(key))

    def tables(self, key: str) -> list[Fields]:
        """Return the array of tables at `key`; an empty one if it is missing."""
        tables = []
        for number, entry in enumerate(self.take(key, list, [])):
            if not isinstance(entry, dict):
                raise self.error(key, "must be an array of tables.")
            tables.append(Fields(self.file, entry, f"{self._name(key)}[{number}]"))
        return tables

    def values_of(self, kind: type[T]) -> dict[str, T]:
        """Return all entries, which must be of type `kind`; any key is allowed."""
        return {key: self.take(key, kind) for key in self._data}

    def scalars(self) -> dict[str, str | int]:
        """Return all entries, which must be strings or whole numbers."""
        return {key: self._scalar(key, value) for key, value in self.rest().items()}

    def lists(self) -> dict[str, tuple[str | int, ...]]:
        """Return all entries as lists of strings or whole numbers; a scalar is a list of one."""
        lists = {}
        for key, value in self.rest().items():
            entries = value if isinstance(value, list) else [value]
            if not entries:
                raise self.error(key, "is an empty list: give at least one value.")
            lists[key] = tuple(self._scalar(key, entry) for entry in entries)
        return lists

    def objects(self, key: str) -> tuple[Mapping[str, Json], ...]:
        """Return the value of `key`, a list of objects, whose contents are unchecked."""
        return tuple(table.rest() for table in self.tables(key))

    def rest(self) -> dict[str, Json]:
        """Return all entries that were not taken yet, unchecked."""
        left = {key: value for key, value in self._data.items() if key not in self._taken}
        self._taken.update(left)
        return left

    def has(self, key: str) -> bool:
        return key in self._data

    def done(self) -> None:
        """Raise UserError for the first key that was not taken: it is probably a typo."""
        for key in self._data:
            if key not in self._taken:
                raise self.error(key, f"is not a key here: {nearest(key, self._taken)}")

    def _scalar(self, key: str, value: Json) -> str | int:
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise self.error(key, f"is {value!r}: it must be a string or a whole number.")
        return value

    def _name(self, key: str) -> str:
        return f"{self.where}.{key}" if self.where else key


def read(table: Fields, kind: type[D], *, strict: bool = True, **given: object) -> D:
    """Return the `kind`, a dataclass, in a table: a key for each field that is not `given`.

    A field may be a string, a number, true or false, one of the values of a Literal, a list of
    strings or of tables, a table of values, or a dataclass: a table. Tables in a list of mappings
    are unchecked. A key may be missing if its field has a default or can be None. If `strict`, no
    other may be there. Raises UserError.
    """
    values = dict(given)
    for name, hint, optional in _fields(kind):
        if name in given:
            continue
        if table.has(name) or not optional:
            values[name] = _value(table, name, hint, strict)
        else:
            # The key is known, and near to a typo perhaps.
            table.take(name, object, None)
    if strict:
        table.done()
    return kind(**values)


@functools.cache
def _fields(kind: type[DataclassInstance]) -> list[tuple[str, object, bool]]:
    """Return the name and the type of each field, and whether it has a default."""
    # Json is recursive, and names what its users do not import.
    hints = get_type_hints(kind, localns={"Json": object}, include_extras=True)
    return [
        (field.name, hints[field.name],
         field.default is not MISSING or field.default_factory is not MISSING)
        for field in fields(kind)
    ]  # fmt: skip


def _value(table: Fields, key: str, hint: object, strict: bool) -> object:
    inner = get_args(hint)
    if isinstance(hint, UnionType) and NoneType in inner:
        (some,) = set(inner) - {NoneType}
        present = table.take(key, object, None) is not None
        return _value(table, key, some, strict) if present else None
    if hint is Bytes:
        try:
            return parse_size(table.take(key, str))
        except ValueError as error:
            raise table.error(key, f"cannot be read: {error}.") from None
    if get_origin(hint) is Literal:
        return table.choice(key, inner)
    if get_origin(hint) is tuple and get_origin(inner[0]) is Mapping:
        return table.objects(key)
    if get_origin(hint) is tuple:
        return table.strings(key) if inner[0] is str else tuple(
            read(entry, inner[0], strict=strict) for entry in table.tables(key)
        )  # fmt: skip
    if get_origin(hint) is Mapping:
        entries = table.table(key)
        return entries.scalars() if isinstance(inner[1], UnionType) else entries.values_of(inner[1])
    if not isinstance(hint, type):
        raise TypeError(f"{key}: no value of a table is a {hint}")
    if is_dataclass(hint):
        return read(table.table(key), hint, strict=strict)
    return table.take(key, hint)


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except OSError as error:
        raise UserError(f"{file}: cannot be read ({error.strerror}).") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{file}: not UTF-8: {error}.") from None


def read_toml(file: Path) -> Fields:
    """Return the top table of a TOML file; UserError if it cannot be read or parsed."""
    try:
        return Fields(file, tomllib.loads(_text(file)))
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{file}: not valid TOML: {error}.") from None


def read_json(file: Path) -> Fields:
    """Return the object of a JSON file; UserError if it cannot be read or is none."""
    return parse_json(_text(file), file)


def parse_json(text: str, source: Path | str) -> Fields:
    """Return the JSON object in `text`; UserError, which names `source`, if it is not one."""
    data = json_object(text)
    if data is None:
        raise UserError(f"{source}: not a JSON object.")
    return Fields(source, data)


def json_object(text: str) -> Mapping[str, Json] | None:
    """Return the JSON object in `text`, unchecked; None if it is not one."""
    try:
        data = json.loads(text)
    except ValueError:
        return None
    return data if isinstance(data, dict) else None


def dump_json(value: Mapping[str, object]) -> str:
    return json.dumps(value, indent=1) + "\n"


def _files_in(folder: Path) -> list[Path]:
    """Return the TOML files in `folder`, and in the user's folder of its name."""
    both = (folder, users_folder() / folder.name)
    return [file for place in both for file in place.glob("*.toml") if file.is_file()]


def names_in(folder: Path) -> list[str]:
    return sorted({file.stem for file in _files_in(folder)})


def file_of(kind: str, name: str, folder: Path) -> Path:
    """Return the file of the `kind` called `name`, from `folder` or the user's own.

    Raises UserError if there is none, or if both have one: names in results are unambiguous.
    """
    files = [file for file in _files_in(folder) if file.stem == name]
    if not files:
        raise UserError(f"unknown {kind} {name!r}: {nearest(name, names_in(folder))}")
    if len(files) > 1:
        raise UserError(
            f"{files[1]}: the project already has a {kind} {name!r}, {files[0]}: "
            "give yours another name."
        )
    return files[0]


def read_named(kind: str, name: str, folder: Path) -> Fields:
    return read_toml(file_of(kind, name, folder))
