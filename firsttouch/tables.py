# SPDX-License-Identifier: GPL-2.0
"""TOML and JSON read strictly: an error names the file, the key and the nearest valid one.

This is where untyped data ends: what leaves this module is a `Table`, whose
values are taken with their types, or `Json`.
"""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from firsttouch.errors import UserError, nearest
from firsttouch.places import search_path

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"

T = TypeVar("T")
_REQUIRED: Any = object()
_NAMES = {str: "a string", int: "a whole number", float: "a number", bool: "true or false",
          list: "a list", dict: "a table"}  # fmt: skip


class Table:
    """One table of a data file; each key is taken once, and what is left over is an error.

    `file` is what error messages call the source: a path, or a description.
    """

    def __init__(self, file: Path | str, data: Mapping[str, Json], where: str = "") -> None:
        self.file = file
        self.where = where
        self._data = data
        self._taken: set[str] = set()

    def error(self, key: str, problem: str) -> UserError:
        """Return the error that `key` of this table has `problem`."""
        return UserError(f"{self.file}: {self._name(key)} {problem}")

    def take(self, key: str, kind: type[T], default: T = _REQUIRED) -> T:
        """Return the value of `key`, which must be of type `kind`.

        Raises UserError if it is missing and has no default, or is of another type.
        """
        self._taken.add(key)
        if key not in self._data:
            if default is _REQUIRED:
                typos = difflib.get_close_matches(key, set(self._data) - self._taken, n=1)
                hint = f" ({typos[0]!r} is not a key here)" if typos else ""
                raise self.error(key, f"is missing{hint}: add it.")
            return default
        value: Any = self._data[key]
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self.error(key, f"is {value!r}: it must be {_NAMES[kind]}.")
        return value

    def strings(self, key: str, default: Sequence[str] = _REQUIRED) -> tuple[str, ...]:
        """Return the value of `key`, which must be a list of strings."""
        if default is not _REQUIRED and key not in self._data:
            return tuple(default)
        values = self.take(key, list)
        if not all(isinstance(value, str) for value in values):
            raise self.error(key, f"is {values!r}: it must be a list of strings.")
        return tuple(values)

    def optional(self, key: str, kind: type[T]) -> T | None:
        """Return the value of `key`; None if it is not there, or null in JSON."""
        self._taken.add(key)
        return None if self._data.get(key) is None else self.take(key, kind)

    def choice(self, key: str, known: Sequence[str], default: str = _REQUIRED) -> str:
        """Return the value of `key`, which must be one of `known`."""
        value = self.take(key, str, default)
        if value not in known:
            raise self.error(key, f"is {value!r}: {nearest(value, known)}")
        return value

    def table(self, key: str) -> Table:
        """Return the table at `key`; an empty one if it is not there."""
        return Table(self.file, self.take(key, dict, {}), self._name(key))

    def tables(self, key: str) -> list[Table]:
        """Return the array of tables at `key`; none if it is not there."""
        entries = self.take(key, list, [])
        if not all(isinstance(entry, dict) for entry in entries):
            raise self.error(key, "must be an array of tables.")
        return [
            Table(self.file, entry, f"{self._name(key)}[{number}]")
            for number, entry in enumerate(entries)
        ]

    def values_of(self, kind: type[T]) -> dict[str, T]:
        """Return all entries, which must be of type `kind`: their keys are the author's choice."""
        return {key: self.take(key, kind) for key in self._data}

    def numbers(self) -> dict[str, float]:
        """Return all entries, which must be numbers; whole ones stay whole."""
        found: dict[str, float] = {}
        for key, value in self._all().items():
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise self.error(key, f"is {value!r}: it must be a number.")
            found[key] = value
        return found

    def scalars(self) -> dict[str, str | int]:
        """Return all entries, which must be strings or whole numbers."""
        return {key: self._scalar(key, value) for key, value in self._all().items()}

    def lists(self) -> dict[str, tuple[str | int, ...]]:
        """Return all entries, strings or whole numbers; a single one stands for a list of it."""
        found = {}
        for key, value in self._all().items():
            entries = value if isinstance(value, list) else [value]
            if not entries:
                raise self.error(key, "is an empty list: give at least one value.")
            found[key] = tuple(self._scalar(key, entry) for entry in entries)
        return found

    def objects(self, key: str) -> tuple[Mapping[str, Json], ...]:
        """Return the value of `key`, which must be a list of objects, as they are."""
        entries = self.take(key, list)
        if not all(isinstance(entry, dict) for entry in entries):
            raise self.error(key, "must be a list of objects.")
        return tuple(entries)

    def rest(self) -> dict[str, Json]:
        """Return all entries that were not taken yet, as they are."""
        left = {key: value for key, value in self._data.items() if key not in self._taken}
        self._taken.update(left)
        return left

    def has(self, key: str) -> bool:
        """Tell whether `key` is there."""
        return key in self._data

    def done(self) -> None:
        """Raise UserError for the first key that nothing has taken: a typo."""
        for key in self._data:
            if key not in self._taken:
                raise self.error(key, f"is not a key here: {nearest(key, self._taken)}")

    def _all(self) -> Mapping[str, Json]:
        self._taken.update(self._data)
        return self._data

    def _scalar(self, key: str, value: Json) -> str | int:
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise self.error(key, f"is {value!r}: it must be a string or a whole number.")
        return value

    def _name(self, key: str) -> str:
        return f"{self.where}.{key}" if self.where else key


def read_toml(file: Path) -> Table:
    """Return the top table of a TOML file; UserError if it cannot be read or parsed."""
    try:
        return Table(file, tomllib.loads(file.read_text("utf-8")))
    except OSError as error:
        raise UserError(f"{file}: cannot be read ({error.strerror}).") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{file}: not valid TOML: {error}.") from None


def parse_json(text: str, source: Path | str) -> Table:
    """Return the object that `text` is in JSON; UserError, which names `source`, if it is none."""
    try:
        data = json.loads(text)
    except ValueError as error:
        raise UserError(f"{source}: not valid JSON: {error}.") from None
    if not isinstance(data, dict):
        raise UserError(f"{source}: not a JSON object.")
    return Table(source, data)


def dump_json(value: Mapping[str, object]) -> str:
    """Return the JSON of a document, in lines."""
    return json.dumps(value, indent=1) + "\n"


def json_object(text: str) -> Mapping[str, Json] | None:
    """Return the object that `text` is in JSON, as it is; None if it is none."""
    try:
        data = json.loads(text)
    except ValueError:
        return None
    return data if isinstance(data, dict) else None


def names_in(folder: Path) -> list[str]:
    """Return the names that the TOML files of `folder`, and the user's beside them, stand for."""
    return sorted({file.stem for place in search_path(folder) for file in place.glob("*.toml")
                   if not file.is_dir()})  # fmt: skip


def file_of(kind: str, name: str, folder: Path, preferred: str = "") -> Path:
    """Return the file that `name`, which is a `kind`, stands for: of `folder` or of the user's.

    Raises UserError, with the nearest name there is (`preferred`, if that is
    one of several), if there is no such file, and if both have one: a name in
    a result must tell which it was.
    """
    files = [place / f"{name}.toml" for place in search_path(folder)]
    found = [file for file in files if file.is_file()]
    if not found:
        near = nearest(name, names_in(folder), preferred)
        raise UserError(f"unknown {kind} {name!r}: {near}")
    if len(found) > 1:
        raise UserError(
            f"{found[1]}: the project has a {kind} {name!r} of its own, {found[0]}: "
            "give yours another name."
        )
    return found[0]


def read_named(kind: str, name: str, folder: Path, preferred: str = "") -> Table:
    """Return the top table of the file that `name`, which is a `kind`, stands for.

    Raises UserError as `file_of` and `read_toml` do.
    """
    return read_toml(file_of(kind, name, folder, preferred))
