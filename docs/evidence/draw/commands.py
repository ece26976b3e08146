# SPDX-License-Identifier: GPL-2.0
"""docs/reference/command.md and the pages of man(1): all commands and options, as in `--help`."""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import fields
from unittest.mock import patch

from docs.evidence.draw.tables import document
from firsttouch.cli.main import main
from firsttouch.trace import sites
from firsttouch.views.tables import Table, markdown

_REFERENCE = "docs/reference/command.md"
_MANUAL = "docs/reference/man"
_KEYS = "docs/reference/trace-json.md"
_HEAD = ("argument", "meaning")
# An argument of --help, and its description on the same line or on the next.
_ENTRY = re.compile(r"^ {2,4}(\S(?: ?\S)*)(?: {2,}|\n {10,})(\S.*)$", re.M)


def draw() -> dict[str, str]:
    """Return the pages by their files."""
    texts = dict(_texts(()))
    return {_REFERENCE: _reference(texts), _KEYS: _keys(), **dict(_manual(texts))}


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


def _described(text: str) -> str:
    found = re.search(r"\n\n([A-Z].*)\n", text)
    return found[1] if found else ""


def _manual(texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the page of each command: its file, and its text in roff."""
    meanings = {f"{name} {entry}": meaning for name, text in texts.items()
                for entry, meaning in _entries(text)}  # fmt: skip
    for name, text in texts.items():
        title = name.replace(" ", "-")
        usage, _, after = text.removeprefix("usage: ").partition("\n\n")
        description = _described(text)
        options = [f".TP\n.B {_roff(entry)}\n{_roff(meaning)}" for entry, meaning in _entries(text)]
        examples = after.partition("\n\nexamples:\n")[2].rstrip()
        sections = {
            "NAME": _roff(f"{title} - {meanings.get(name, description)}"),
            "SYNOPSIS": re.sub(r"\n +", "\n.br\n", _roff(usage)),
            "DESCRIPTION": _roff(description),
            "OPTIONS": "\n".join(options),
            "EXAMPLES": examples and f".nf\n{_roff(examples)}\n.fi",
            "SEE ALSO": "firsttouch(1)" * (name in meanings),
        }
        yield f"{_MANUAL}/{title}.1", "\n".join([
            '.\\" SPDX-License-Identifier: GPL-2.0', f'.TH "{title}" 1 "" firsttouch',
            *(f".SH {head}\n{body}" for head, body in sections.items() if body), "",
        ])  # fmt: skip


def _roff(text: str) -> str:
    return re.sub(r"^([.'])", r"\\&\1", text.replace("\\", r"\e").replace("-", r"\-"), flags=re.M)


def _reference(texts: Mapping[str, str]) -> str:
    options = {name: _entries(text) for name, text in texts.items()}
    count = Counter(entry for entries in options.values() for entry in entries)
    common = [entry for entry, commands in count.items() if commands > 1]
    lines = []
    for name, entries in {**options, "": common}.items():
        own = [entry for entry in entries if not name or entry not in common]
        if own:
            lines += ["", f"## {name or 'Options of several commands'}", ""]
            description = _described(texts.get(name, ""))
            # Some only repeat the line of the list of commands.
            if sum(description[1:-1] in text for text in texts.values()) == 1:
                lines += [description, ""]
            lines += markdown(Table("", _HEAD, [[f"`{a}`", b] for a, b in own], names=2))
    said = " from `firsttouch COMMAND --help`, which also has examples."
    return document("Commands and options", said, lines).replace("&lt;", "<")


def _texts(words: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield each command and its --help, all of a description on one line."""
    printed = io.StringIO()
    with patch.dict(os.environ, COLUMNS="10000"), contextlib.redirect_stdout(printed):
        main([*words, "--help"])
    yield " ".join(("firsttouch", *words)), printed.getvalue()
    listed = re.search(r"\n  (?:COMMAND|ACTION)\n((?: {4}.*\n)+)", printed.getvalue())
    for command in re.findall(r"^ {4}(\w+)", listed[1] if listed else "", re.M):
        yield from _texts((*words, command))
