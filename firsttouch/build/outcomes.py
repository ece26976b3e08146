# SPDX-License-Identifier: GPL-2.0
"""Outcomes of guests, kept under the digest of everything that decides them.

An outcome is one JSON file that appears by an atomic rename. It holds the
digest of its contents; a damaged outcome counts as missing. If two processes
run the same guest, both write the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from firsttouch.build.store import note_use, store_root
from firsttouch.files import digest, write_atomically
from firsttouch.tables import Json, Table, json_object

OUTCOMES = "outcomes"


def _place(key: str) -> Path:
    # 256 directories, so that none has more than a few thousand entries.
    return store_root() / OUTCOMES / key[:2] / f"{key}.json"


def kept_outcome(key: str) -> Table | None:
    """Return the outcome that is kept under `key`; None if it is missing or damaged."""
    place = _place(key)
    note_use(place)
    try:
        document = json_object(place.read_text())
        outcome = document.get("outcome") if document else None
        if document is None or document.get("digest") != digest(outcome):
            return None
    except (OSError, UnicodeDecodeError):
        return None
    return Table(place, document).table("outcome")


def keep_outcome(key: str, outcome: Mapping[str, Json]) -> None:
    """Keep `outcome` under `key`; it is on the disk when this returns."""
    document = {"digest": digest(outcome), "outcome": outcome}
    write_atomically(_place(key), json.dumps(document) + "\n")
