# SPDX-License-Identifier: GPL-2.0
"""Habits that make pages and messages hard to read become rarer: tests/data/english.toml."""

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest

from firsttouch.files import REPOSITORY
from firsttouch.tables import Fields, read_toml

_HABITS = list(read_toml(REPOSITORY / "tests/data/english.toml").tables("habit"))
_LONGEST = {"sentence": 30, "cell": 20}


@cache
def _pages() -> dict[str, str]:
    """Return the pages that people write, without code."""
    files = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
    texts = {str(file.relative_to(REPOSITORY)): file.read_text("utf-8") for file in files}
    return {
        name: re.sub(r"^ *```.*?^ *```$|`[^`\n]*`", "CODE", text, flags=re.M | re.S)
        for name, text in texts.items()
        if "Written by `make evidence`" not in text
    }


@cache
def _messages() -> dict[str, str]:
    """Return the strings with words of each module, but for docstrings."""
    return {
        str(file.relative_to(REPOSITORY)): "\n\n".join(_strings(ast.parse(file.read_text())))
        for file in sorted((REPOSITORY / "firsttouch").rglob("*.py"))
    }


def _strings(module: ast.Module) -> Iterator[str]:
    docstrings = {node.value for node in ast.walk(module) if isinstance(node, ast.Expr)}
    for node in ast.walk(module):
        if isinstance(node, ast.Constant) and node not in docstrings:
            yield from [node.value] if isinstance(node.value, str) and " " in node.value else []


def _found(pattern: str, text: str) -> list[str]:
    """Return the matches of a pattern, or each `sentence` or `cell` that is too long."""
    if pattern not in _LONGEST:
        return re.findall(rf"\b(?:{pattern})\b", text, re.I)
    rows = [line for line in text.splitlines() if line.lstrip().startswith("|")]
    prose = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("|"))
    parts = re.split(r"(?<=[.:?!])\s|\n\s*\n|\n *(?:[-#]|\d\.)|\|", prose)
    if pattern == "cell":
        parts = [cell for row in rows for cell in row.split("|")]
    return [part.strip()[:60] for part in parts if len(part.split()) > _LONGEST[pattern]]


@pytest.mark.parametrize("habit", _HABITS, ids=lambda habit: habit.take("shape", str))
def test_habits_become_rarer(habit: Fields) -> None:
    shape, better = habit.take("shape", str), habit.take("better", str)
    for texts, ceiling in ((_pages(), "pages"), (_messages(), "messages")):
        places = [(name, part) for name, text in texts.items() for part in _found(shape, text)]
        assert len(places) <= habit.take(ceiling, int), f"{better}: {places}"
