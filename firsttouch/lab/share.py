# SPDX-License-Identifier: GPL-2.0
"""A share: a directory, also of several hosts, through which a run gives guests to workers.

share.json          the schema
parts/ab/SHA256     kernel images, programs and disks, by content
outcomes/ab/KEY.json  what guests gave, in the form of the store, and who ran them
claims/ab/KEY       held while a worker runs the guest
plans/NAME/         one plan, until its run has ended: posted.py

Every file appears whole, by a link or a rename, and has its digest. A file that
the share lost is noticed and made again.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from firsttouch.build.claims import LEASE
from firsttouch.build.outcomes import OUTCOME, guest_claim, outcome_place, read_sealed, sealed
from firsttouch.errors import HostError, UserError
from firsttouch.files import digest, digest_file, write_atomically, write_once
from firsttouch.processes import output
from firsttouch.tables import Json, Table, parse_json

SCHEMA = 1
_MARK = "share.json"


@dataclass(frozen=True)
class Share:
    """The directory; `lease` is in seconds, `board` the folder of plans if that is elsewhere."""

    root: Path
    lease: float = LEASE
    board: Path | None = None

    def part(self, sha256: str) -> Path:
        """Return the place of the file with this content."""
        return self.root / "parts" / sha256[:2] / sha256

    def add_part(self, sha256: str, file: Path) -> None:
        """Copy `file` into the share, unless it has it; the holes of a disk stay holes."""
        place = self.part(sha256)
        with contextlib.suppress(FileNotFoundError):
            if place.stat().st_size == file.stat().st_size:
                return
        place.parent.mkdir(parents=True, exist_ok=True)
        partial = place.with_name(f".{place.name}.{uuid.uuid4().hex}")
        try:
            if not copy_part(file, partial, sha256):
                raise HostError(f"{self.root} damaged a copy of {file}: check that directory.")
            partial.rename(place)
        finally:
            partial.unlink(missing_ok=True)

    def claim(self, name: str) -> Path:
        """Return the claim of a guest: its key, or a name that begins with it."""
        return guest_claim(name, self.root)

    @property
    def plans(self) -> Path:
        """Return the folder of plans."""
        return self.board or self.root / "plans"

    def outcome(self, key: str) -> Table | None:
        """Return the document with an outcome and who ran it; None if it is missing or damaged."""
        return read_sealed(outcome_place(key, self.root), OUTCOME)

    def keep(self, place: Path, outcome: Mapping[str, Json], by: By) -> Table | None:
        """Keep an outcome at `place`; if another is there that differs, return that instead."""
        text = sealed(OUTCOME, outcome, by=vars(by))
        if write_once(place, text):
            return None
        there = read_sealed(place, OUTCOME)
        if there is None:
            write_atomically(place, text)
        return there if there and there.take("digest", str) != digest(outcome) else None


@dataclass(frozen=True)
class By:
    """Who ran a guest, and the seconds that it took."""

    host: str
    worker: str
    seconds: float


def ran_by(outcome: Table) -> By:
    """Return who ran the guest of an outcome; of what has no such note, this host."""
    if not outcome.has("by"):
        return By(socket.gethostname(), "", 0.0)
    by = outcome.table("by")
    return By(by.take("host", str), by.take("worker", str), by.take("seconds", float))


def copy_part(file: Path, place: Path, sha256: str) -> bool:
    """Copy a file; tell whether what arrived is what its digest says."""
    output(["cp", "--reflink=auto", "--sparse=always", file, place])
    with place.open("rb+") as copied:
        os.fsync(copied.fileno())
    return digest_file(place) == sha256


def open_share(root: Path, *, make: bool = False) -> Share:
    """Return the share in `root`; with `make`, make it of a directory that is missing or empty.

    Raises UserError if `root` is no share, HostError if it cannot be written.
    """
    place = root / _MARK
    try:
        if make and (not root.exists() or not any(root.iterdir())):
            write_atomically(place, json.dumps({"schema": SCHEMA}) + "\n")
        found = parse_json(place.read_text(), place).take("schema", int)
        probe = root / f".{uuid.uuid4().hex}"
        probe.touch()
        probe.unlink()
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(
            f"{root} is not a share: `firsttouch lab --on DIRECTORY` makes one of a directory that "
            "is missing or empty."
        ) from None
    except OSError as error:
        raise HostError(
            f"cannot use {root} as a share ({error.strerror}): give a directory that this user "
            "can write."
        ) from None
    if found != SCHEMA:
        raise UserError(
            f"{root} has schema {found}, but this firsttouch works with schema {SCHEMA}: run the "
            "same version on all hosts, or name another directory."
        )
    return Share(root.resolve())
