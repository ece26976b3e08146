# SPDX-License-Identifier: GPL-2.0
"""Outcomes of guests, kept under the digest of everything that decides them.

An outcome is one JSON file that appears by an atomic rename. It holds the
digest of its contents; a damaged outcome counts as missing. A long one, which
has recordings of page faults, is packed by xz.
"""

from __future__ import annotations

import contextlib
import json
import lzma
import os
from collections.abc import Mapping
from pathlib import Path

from firsttouch.building.store import store_root
from firsttouch.files import digest, write_atomically
from firsttouch.tables import Json, Table, json_object

OUTCOMES, OUTCOME = "outcomes", "outcome"
# How a file that xz packed begins, and from how many bytes on a document is packed.
_PACKED, _LONG = b"\xfd7zXZ\0", 1 << 16


def outcome_place(key: str) -> Path:
    """Return the file that keeps the outcome of `key`."""
    # 256 directories, so that none has more than a few thousand entries.
    return store_root() / OUTCOMES / key[:2] / f"{key}.json"


def guest_lock(key: str) -> Path:
    """Return the lock that a process holds while it runs the guest of `key`."""
    return outcome_place(key).with_suffix(".lock")


def stored_outcome(key: str) -> Table | None:
    """Return the outcome that the store keeps under `key`; None if it is missing or damaged."""
    place = outcome_place(key)
    # A run keeps what it has read: only the time of the use counts.
    with contextlib.suppress(OSError):
        os.utime(place)
    document = read_sealed(place, OUTCOME)
    return document.table(OUTCOME) if document else None


def keep_outcome(key: str, outcome: Mapping[str, Json]) -> None:
    """Keep `outcome` under `key`; it is on the disk when this returns."""
    write_atomically(outcome_place(key), sealed(OUTCOME, outcome))


def sealed(name: str, contents: Json) -> bytes:
    """Return a document whose digest covers its `contents`, which it has under `name`."""
    text = json.dumps({"digest": digest(contents), name: contents}).encode() + b"\n"
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
