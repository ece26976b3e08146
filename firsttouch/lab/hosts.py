# SPDX-License-Identifier: GPL-2.0
"""What belongs to hosts, and so to no result: who ran which guest, how long, and the audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from firsttouch.errors import UserError
from firsttouch.files import write_atomically
from firsttouch.tables import dump_json, parse_json

FILE_NAME = "hosts.json"
SCHEMA = 2


@dataclass(frozen=True)
class Ran:
    """A guest that was run for this run: its key and cells, where, and the seconds that it took."""

    key: str
    cells: tuple[str, ...]
    host: str
    seconds: float


@dataclass(frozen=True)
class Audited:
    """A guest that ran twice and gave the same bytes: its first cell, and the hosts."""

    key: str
    cell: str
    hosts: tuple[str, str]


@dataclass
class Record:
    """What a run notes of hosts."""

    ran: list[Ran] = field(default_factory=list)
    audited: list[Audited] = field(default_factory=list)

    def sentence(self, sampled: int, guests: int) -> str:
        """Say how many of `guests` were to run twice, and how many gave the same bytes."""
        hosts = {host for audited in self.audited for host in audited.hosts}
        return (
            f"Audit: of {guests:,} guests {sampled:,} were to run twice; {len(self.audited):,} "
            f"gave the same bytes ({', '.join(sorted(hosts)) or 'no host'})."
        )

    def write(self, directory: Path) -> None:
        """Write `directory`/hosts.json."""
        hosts: dict[str, dict[str, float]] = {}
        for ran in self.ran:
            of_host = hosts.setdefault(ran.host, {"guests": 0, "cells": 0, "seconds": 0.0})
            of_host["guests"] += 1
            of_host["cells"] += len(ran.cells)
            of_host["seconds"] = round(of_host["seconds"] + ran.seconds, 3)
        document: Mapping[str, object] = {
            "schema": SCHEMA,
            "hosts": hosts,
            "guests": [vars(ran) for ran in self.ran],
            "audited": [vars(audited) for audited in self.audited],
        }
        write_atomically(directory / FILE_NAME, dump_json(document))


def number_audited(directory: Path) -> int:
    """Return how many guests `directory`/hosts.json says ran twice; 0 if there is none."""
    place = directory / FILE_NAME
    try:
        return len(parse_json(place.read_text(), place).tables("audited"))
    except (OSError, UserError):
        return 0


def audited(keys: Sequence[str], fraction: float) -> set[str]:
    """Return the keys whose guests are run twice: about this fraction of them, at least one.

    The digest decides, so that the same request audits the same guests.
    """
    if not fraction:
        return set()
    least = min(keys, default="")
    return {key for key in keys if int(key[:8], 16) < fraction * 2**32 or key == least}
