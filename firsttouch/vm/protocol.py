# SPDX-License-Identifier: GPL-2.0
"""The results channel: what a guest's commands printed, and how each ended.

guest/init.c writes each command's output to the channel, then a newline, then
an end marker: a line with the command's number and status. The newline keeps
the marker on its own line if the output does not end in a newline.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from firsttouch.tables import Json, json_object

_COMMAND_ENDED = re.compile(r"\n?^\{\"command\": (\d+), \"status\": (\d+)\}\n", re.M)
_ALL_ENDED = re.compile(r'\{"commands": (\d+)\}\n')


@dataclass(frozen=True)
class Done:
    """How one command of a guest ended: its exit status as in a shell, and its output."""

    status: int
    lines: tuple[str, ...]

    def objects(self) -> tuple[Mapping[str, Json], ...]:
        """Return the lines as JSON objects; ValueError holds the first line that is not one."""
        objects = []
        for line in self.lines:
            value = json_object(line)
            if value is None:
                raise ValueError(line)
            objects.append(value)
        return tuple(objects)


def read_channel(text: str) -> list[Done] | None:
    """Return how each command of a guest ended; None if the guest ended before its commands."""
    commands: list[Done] = []
    begin = 0
    for ended in _COMMAND_ENDED.finditer(text):
        if int(ended[1]) != len(commands):
            return None
        output = text[begin : ended.start()].removesuffix("\n")
        # Not splitlines(): it also splits at characters that JSON may contain.
        commands.append(Done(int(ended[2]), tuple(output.split("\n")) if output else ()))
        begin = ended.end()
    last = _ALL_ENDED.fullmatch(text[begin:])
    return commands if last and int(last[1]) == len(commands) else None
