# SPDX-License-Identifier: GPL-2.0
"""Cover letters: a template of linux/ with figures and answers of docs/, as plain text."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from firsttouch.places import REPOSITORY

# The longest line of a mail that a maintainer reads.
WIDTH = 72
_OBJECTIONS = REPOSITORY / "docs/objections.md"
_EVIDENCE = REPOSITORY / "docs/evidence"


def cover_letter(template: Path) -> str:
    """Return the text of a cover letter; its figures are of the release that is posted.

    In a template, `{figures: BLOCK}` is a block of docs/evidence/*.md, and
    `{figures: BLOCK, CELL}` only the rows that have this cell, without its column.
    """
    _, _, text = template.read_text().partition("-->\n")  # its licence
    text = re.sub(r"^\{objections: (.*)\}$", lambda match: _answers(match[1]), text, flags=re.M)
    return re.sub(r"^\{figures: (.*)\}$", lambda match: _figures(match[1]), text, flags=re.M)


def _answers(section: str) -> str:
    """Return the objections of a section of docs/objections.md, each with its answer."""
    _, _, rest = _OBJECTIONS.read_text().partition(f"## {section}\n")
    rows = re.findall(r"^\| (.+?) \| (.+?) \| .+ \|$", rest.partition("\n## ")[0], re.M)
    return "\n".join(
        _wrapped(f"- {objection.rstrip('.')}: {answer.rstrip('.')}.", "  ")
        for objection, answer in rows[1:]
    )


def _figures(wanted: str) -> str:
    """Return a block of figures of docs/evidence/, with the commands that give them."""
    block, _, cell = wanted.partition(", ")
    text = "".join(page.read_text() for page in sorted(_EVIDENCE.glob("*.md")))
    _, start, rest = text.partition(f"<!-- evidence: {block} -->\n")
    assert start, f"docs/evidence has no block {block}"
    parts = []
    for paragraph in rest.partition("<!-- end -->")[0].strip().split("\n\n"):
        lines = paragraph.splitlines()
        if lines[0].startswith("|"):
            parts.append(plain_table(lines, cell))
        else:
            parts += [_wrapped(line, "  ") for line in lines]
    return "\n".join(parts)


def _wrapped(line: str, indent: str) -> str:
    # The source is named once, at the end of the letter.
    line = re.sub(r", source `sha256:\w+`", "", line)
    return textwrap.fill(
        _plain(line), WIDTH, subsequent_indent=indent,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def _plain(text: str) -> str:
    """Return Markdown as plain text: the words of a link, without its address."""
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text).replace("`", "")


def plain_table(lines: list[str], cell: str = "") -> str:
    """Return a table of Markdown in columns as narrow as their cells, titles on lines of words."""
    rows = [[_plain(cell.strip()) for cell in line.split("|")[1:-1]] for line in lines]
    titles, marks, *body = rows
    body = [row for row in body if not cell or cell in row]
    columns = [place for place in range(len(titles)) if not cell or cell != body[0][place]]
    words = [titles[place].split() for place in columns]
    body = [[row[place] for place in columns] for row in body]
    left = [not marks[place].endswith(":") for place in columns]
    widths = [
        max(map(len, [*column, *title]))
        for column, title in zip(zip(*body, strict=True), words, strict=True)
    ]
    height = max(map(len, words))
    heads = [
        [([""] * (height - len(title)) + title)[line] for title in words] for line in range(height)
    ]
    gap = 2 if sum(widths) + 2 * (len(widths) - 1) <= WIDTH else 1
    return "\n".join(_row(row, widths, left, gap) for row in [*heads, *body])


def _row(cells: list[str], widths: list[int], left: list[bool], gap: int) -> str:
    padded = [
        cell.ljust(width) if to_left else cell.rjust(width)
        for cell, width, to_left in zip(cells, widths, left, strict=True)
    ]
    return (gap * " ").join(padded).rstrip()
