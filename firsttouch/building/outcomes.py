# SPDX-License-Identifier: GPL-2.0
"""Outcomes of guests, kept under the digest of everything that decides them.

An outcome is one JSON file that appears by an atomic rename. It holds the
digest of its contents; a damaged outcome counts as missing. A long one, which
has recordings of page faults, is packed by xz. If two processes run the same
guest, both must find the same contents.
"""

from __future__ import annotations

import json
import lzma
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from firsttouch.building.store import note_use, store_root
from firsttouch.files import digest, write_atomically, write_once
from firsttouch.tables import Json, Table, json_object
from firsttouch.typed import read

OUTCOMES, OUTCOME, CLAIMS = "outcomes", "outcome", "claims"
# How a file that xz packed begins, and from how many bytes on a document is packed.
_PACKED, _LONG = b"\xfd7zXZ\0", 1 << 16


@dataclass(frozen=True)
class By:
    """The host that ran a guest, and the seconds that it took."""

    host: str
    seconds: float


def outcome_place(key: str) -> Path:
    """Return the file that keeps the outcome of `key`."""
    # 256 directories, so that none has more than a few thousand entries.
    return store_root() / OUTCOMES / key[:2] / f"{key}.json"


def guest_claim(key: str) -> Path:
    """Return the claim that a process holds while it runs the guest of `key`."""
    return store_root() / CLAIMS / key[:2] / key


def stored_outcome(key: str) -> Table | None:
    """Return the outcome that the store keeps under `key`; None if it is missing or damaged."""
    document = stored_document(key)
    return document.table(OUTCOME) if document else None


def stored_document(key: str) -> Table | None:
    """Return the outcome of `key` with its digest and who ran it; None as for `stored_outcome`."""
    place = outcome_place(key)
    note_use(place)
    return read_sealed(place, OUTCOME)


def keep_outcome(key: str, outcome: Mapping[str, Json], by: By | None = None) -> Table | None:
    """Keep `outcome` under `key`; it is on the disk when this returns.

    An outcome that is there stays. Returns its document if it differs.
    """
    place = outcome_place(key)
    text = sealed(OUTCOME, outcome, **({"by": vars(by)} if by else {}))
    if write_once(place, text):
        return None
    there = read_sealed(place, OUTCOME)
    if there is None:
        write_atomically(place, text)
    return there if there and there.take("digest", str) != digest(outcome) else None


def drop_outcome(key: str) -> None:
    """Remove the outcome of `key` from the store, because it cannot be trusted."""
    outcome_place(key).unlink(missing_ok=True)


def run_by(document: Table) -> By:
    """Return who ran the guest of a sealed document; of one without that note, this host."""
    if not document.has("by"):
        return By(socket.gethostname(), 0.0)
    return read(document.table("by"), By)


def sealed(name: str, contents: Json, **more: Json) -> bytes:
    """Return a document whose digest covers its `contents`, which it has under `name`."""
    text = json.dumps({"digest": digest(contents), name: contents, **more}).encode() + b"\n"
    # What is packed the most is digits: a higher preset takes longer and gains little.
    return lzma.compress(text, preset=1) if len(text) > _LONG else text


def read_sealed(place: Path, name: str) -> Table | None:
    """Return the document that `sealed` made; None if it is missing or damaged."""
    try:
        data = place.read_bytes()
        text = lzma.decompress(data) if data.startswith(_PACKED) else data
        document = json_object(text.decode())
    except (OSError, UnicodeDecodeError, lzma.LZMAError):
        return None
    if document is None or document.get("digest") != digest(document.get(name)):
        return None
    return Table(place, document)
