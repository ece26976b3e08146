# SPDX-License-Identifier: GPL-2.0
"""Reads docs/project/objections.md: each objection, and what answers it."""

import re
from dataclasses import dataclass

from firsttouch.files import REPOSITORY


@dataclass(frozen=True)
class Answer:
    """A file, and what in it answers; for some files the whole is the answer, and `name` empty."""

    file: str
    name: str


def objections() -> dict[str, list[Answer]]:
    """Return the answers to each objection."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in (REPOSITORY / "docs/project/objections.md").read_text().splitlines()
        if line.startswith("| ") and not line.startswith("| objection")
    ]
    return {
        objection: [
            Answer(file, name) for file, name in re.findall(r"`([^`:]+)(?:: ([^`]+))?`", shown_by)
        ]
        for objection, _, shown_by in rows
    }


def names(answer: str, test: str) -> bool:
    """Tell whether `test`, as a suite reports it, is one that `answer` names: by whole words."""
    return re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", test) is not None


def reported_by(file: str) -> set[str]:
    """Return what `file`, of a suite that runs in guests, must report as passed."""
    return {answer.name for some in objections().values() for answer in some if answer.file == file}
