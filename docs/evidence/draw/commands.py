# SPDX-License-Identifier: GPL-2.0
"""docs/reference/command.md: all commands and options, as `--help` prints them."""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections import Counter
from collections.abc import Iterator
from unittest.mock import patch

from firsttouch.cli.main import main
from firsttouch.views.tables import Table, markdown

FILE = "docs/reference/command.md"
_HEAD = ("argument", "meaning")
# An argument of --help, and its description on the same line or on the next.
_ENTRY = re.compile(r"^ {2,4}(\S(?: ?\S)*)(?: {2,}|\n {10,})(\S.*)$", re.M)


def draw() -> str:
    """Return the page."""
    texts = dict(_texts(()))
    options = {
        name: [entry for entry in _ENTRY.findall(text.partition("\n\nexamples:")[0])
               if entry[0] != "-h, --help"]
        for name, text in texts.items()
    }  # fmt: skip
    count = Counter(entry for entries in options.values() for entry in entries)
    common = [entry for entry, commands in count.items() if commands > 1]
    lines = [
        "<!-- SPDX-License-Identifier: GPL-2.0 -->",
        "# Commands and options",
        "",
        "Written by `make evidence` from `firsttouch COMMAND --help`, which also has examples.",
    ]
    for name, entries in {**options, "": common}.items():
        own = [entry for entry in entries if not name or entry not in common]
        if own:
            lines += ["", f"## {name or 'Options of several commands'}", ""]
            if described := re.search(r"\n\n([A-Z].*)\n", texts.get(name, "")):
                lines += [described[1], ""]
            lines += markdown(Table("", _HEAD, [[f"`{a}`", b] for a, b in own], names=2))
    return "".join(f"{line}\n" for line in lines).replace("&lt;", "<")


def _texts(words: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield each command and its --help, all of a description on one line."""
    printed = io.StringIO()
    with patch.dict(os.environ, COLUMNS="10000"), contextlib.redirect_stdout(printed):
        main([*words, "--help"])
    yield " ".join(("firsttouch", *words)), printed.getvalue()
    listed = re.search(r"\n  (?:COMMAND|ACTION)\n((?: {4}.*\n)+)", printed.getvalue())
    for command in re.findall(r"^ {4}(\w+)", listed[1] if listed else "", re.M):
        yield from _texts((*words, command))
