# SPDX-License-Identifier: GPL-2.0
"""docs/reference/command.md and the page of man(1): all commands and options, as in `--help`."""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import fields
from unittest.mock import patch

from argparse_manpage.manpage import Manpage

from docs.evidence.draw.tables import document
from firsttouch.cli.main import full_parser, main
from firsttouch.trace import sites
from firsttouch.views.tables import Table, markdown

_REFERENCE = "docs/reference/command.md"
_MANUAL = "docs/reference/man/firsttouch.1"
_KEYS = "docs/reference/trace-json.md"
_HEAD = ("argument", "meaning")
_PAGE = {"description": "measure page faults", "manual_title": "User Commands", "date": "2026"}
# An argument of --help, and its description on the same line or on the next.
_ENTRY = re.compile(r"^ {2,4}(\S(?: ?\S)*)(?: {2,}|\n {10,})(\S.*)$", re.M)


def draw() -> dict[str, str]:
    """Return the pages by their files."""
    texts = dict(_texts(()))
    return {_REFERENCE: _reference(texts), _KEYS: _keys(), _MANUAL: _manual()}


def _keys() -> str:
    """Return the keys of trace.json, the fields of its classes."""
    said = (
        " from `firsttouch/trace/sites.py`, which describes the keys: a `Trace` with `schema` "
        f"({sites.SCHEMA}), `doubles` and `sentences`. Lists have at most 100 entries."
    )
    lines = []
    for name in ("Trace", "FaultPlace", "Location", "Members", "Remedy", "Site"):
        keys = ", ".join(f"{key.name}: {key.type}" for key in fields(getattr(sites, name)))
        lines += ["", f"`{name}`: {keys}"]
    return document("trace.json", said, lines)


def _entries(text: str) -> list[tuple[str, str]]:
    entries = _ENTRY.findall(text.partition("\n\nexamples:")[0])
    return [entry for entry in entries if entry[0] != "-h, --help"]


def _manual() -> str:
    with patch.dict(os.environ, COLUMNS="80"):
        page = Manpage(full_parser(), _PAGE)
        return f'.\\" SPDX-License-Identifier: GPL-2.0\n{page}\n'


def _reference(texts: Mapping[str, str]) -> str:
    options = {name: _entries(text) for name, text in texts.items()}
    commands = defaultdict[tuple[str, str], list[str]](list)
    for command, entries in options.items():
        for entry in entries:
            commands[entry].append(command.removeprefix("firsttouch "))
    rows = {name: [e for e in options[name] if len(commands[e]) == 1] for name in options}
    common = [(entry, ", ".join(of)) for entry, of in commands.items() if len(of) > 1]
    rows[""] = [(name, f"{meaning} ({of})") for (name, meaning), of in common]
    lines = []
    for name, own in rows.items():
        if own:
            lines += ["", f"## {name or 'Options of several commands'}", ""]
            said = re.search(r"\n\n([A-Z].*)\n", texts.get(name, ""))
            # Some only repeat the line of the list of commands.
            if said and sum(said[1][1:-1] in text for text in texts.values()) == 1:
                lines += [said[1], ""]
            lines += markdown(Table("", _HEAD, [[f"`{a}`", b] for a, b in own], names=2))
    source = " from `firsttouch COMMAND --help`, which also has examples."
    return document("Commands and options", source, lines).replace("&lt;", "<")


def _texts(words: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield each command and its --help, all of a description on one line."""
    printed = io.StringIO()
    with patch.dict(os.environ, COLUMNS="10000"), contextlib.redirect_stdout(printed):
        main([*words, "--help"])
    yield " ".join(("firsttouch", *words)), printed.getvalue()
    listed = re.search(r"\n  (?:COMMAND|ACTION)\n((?: {4}.*\n)+)", printed.getvalue())
    for command in re.findall(r"^ {4}(\w+)", listed[1] if listed else "", re.M):
        yield from _texts((*words, command))
