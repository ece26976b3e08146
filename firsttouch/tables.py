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
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from types import NoneType
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
_REQUIRED: Any = MISSING
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

    def take(self, key: str, kind: type[T], default: T = _REQUIRED, strict: bool = True) -> T:
        """Return the value of `key`, of a type that a field may have for `read`."""
        self._taken.add(key)
        if key in self._data:
            checked: T = self._checked(key, self._data[key], kind, strict)
            return checked
        if default is _REQUIRED:
            typos = difflib.get_close_matches(key, set(self._data) - self._taken, n=1)
            hint = f" ({typos[0]!r} is not a key here)" if typos else ""
            raise self.error(key, f"is missing{hint}: add it.")
        return default

    def choice(self, key: str, choices: Sequence[str]) -> str:
        value = self.take(key, str)
        if value not in choices:
            raise self.error(key, f"is {value!r}: {nearest(value, choices)}")
        return value

    def strings(self, key: str) -> tuple[str, ...]:
        return self.take(key, tuple[str, ...])

    def table(self, key: str) -> Fields:
        """Return the table at `key`; an empty one if it is missing."""
        return Fields(self.file, self.take(key, dict, {}), self._name(key))

    def tables(self, key: str) -> list[Fields]:
        """Return the array of tables at `key`; an empty one if it is missing."""
        tables, name = enumerate(self.objects(key)), self._name(key)
        return [Fields(self.file, table, f"{name}[{number}]") for number, table in tables]

    def objects(self, key: str) -> tuple[Mapping[str, Json], ...]:
        """Return the value of `key`, a list of objects, whose contents are unchecked."""
        return self.take(key, tuple[dict[str, Json], ...], ())

    def values_of(self, kind: type[T]) -> dict[str, T]:
        """Return all entries that were not taken yet, which must be of type `kind`."""
        return {key: self._checked(key, value, kind) for key, value in self.rest().items()}

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

    def _checked(self, key: str, value: Any, hint: Any, strict: bool = True) -> Any:
        """Return `value`, that of `key`, as the type `hint`, which is of those of `read`."""
        if type(value) is hint:
            # Fast, for most values.
            return value
        origin, inner = get_origin(hint), get_args(hint)
        if NoneType in inner:
            (some,) = set(inner) - {NoneType}
            return None if value is None else self._checked(key, value, some, strict)
        if hint == Bytes:
            try:
                return parse_size(self._checked(key, value, str))
            except ValueError as error:
                raise self.error(key, f"cannot be read: {error}.") from None
        if origin is Literal:
            return self.choice(key, inner)
        if origin is tuple:
            if inner[0] == str | int and not isinstance(value, list):
                # One value, where there may be several.
                value = [value]
            entries = enumerate(self._checked(key, value, list))
            return tuple(
                self._checked(f"{key}[{n}]", each, inner[0], strict) for n, each in entries
            )
        if origin is Mapping or is_dataclass(hint):
            table = Fields(self.file, self._checked(key, value, dict), self._name(key))
            return table.values_of(inner[1]) if inner else read(table, hint, strict=strict)
        kinds = {origin} if origin is dict else set(inner or [hint])
        # A whole number is a number, too; true is neither.
        fits = isinstance(value, (*kinds, int) if float in kinds else tuple(kinds))
        if not fits or (isinstance(value, bool) and kinds & {int, float}):
            names = " or ".join(_NAMES[kind] for kind in _NAMES if kind in kinds)
            raise self.error(key, f"is {value!r}: it must be {names}.")
        return value

    def _name(self, key: str) -> str:
        return f"{self.where}.{key}" if self.where else key


def read(table: Fields, kind: type[D], *, strict: bool = True, **given: object) -> D:
    """Return the `kind`, a dataclass, in a table: a key for each field that is not `given`.

    A field may be a string, a number, true or false, one of the values of a Literal, a list, a
    table of values, or a dataclass: a table. A key may be missing if its field has a default or can
    be None. If `strict`, no other may be there. Raises UserError.
    """
    values = dict(given)
    for field, hint in _fields(kind):
        if field.name not in given:
            default = field.default if field.default_factory is MISSING else field.default_factory()
            if default is MISSING and NoneType in get_args(hint):
                default = None
            values[field.name] = table.take(field.name, hint, default, strict)
    if strict:
        table.done()
    return kind(**values)


@functools.cache
def _fields(kind: type[DataclassInstance]) -> list[tuple[Field[Any], Any]]:
    """Return the fields and the type of each."""
    # Json is recursive, and names what its users do not import.
    hints = get_type_hints(kind, localns={"Json": object}, include_extras=True)
    return [(field, hints[field.name]) for field in fields(kind)]


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
        raise UserError(f"{source} is cut off or no JSON object: make it again.")
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
        add = "" if kind == "architecture" else " To add one: docs/how-to/adding.md."
        raise UserError(f"unknown {kind} {name!r}: {nearest(name, names_in(folder))}{add}")
    if len(files) > 1:
        raise UserError(
            f"{files[1]}: {name!r} is the name of another {kind}, {files[0]}: "
            "give yours another name."
        )
    return files[0]


def read_named(kind: str, name: str, folder: Path) -> Fields:
    return read_toml(file_of(kind, name, folder))
