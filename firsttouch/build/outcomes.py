# SPDX-License-Identifier: GPL-2.0
"""Outcomes of guests, kept under the digest of everything that decides them.

An outcome is one JSON file that appears by an atomic rename. It holds the
digest of its contents; a damaged outcome counts as missing. If two processes
run the same guest, both must find the same contents.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from firsttouch.build.store import note_use, store_root
from firsttouch.files import digest, write_atomically
from firsttouch.tables import Json, Table, json_object

OUTCOMES, OUTCOME, CLAIMS = "outcomes", "outcome", "claims"


def outcome_place(key: str, root: Path | None = None) -> Path:
    """Return the file that keeps the outcome of `key`: in the store, or below `root`."""
    # 256 directories, so that none has more than a few thousand entries.
    return (root or store_root()) / OUTCOMES / key[:2] / f"{key}.json"


def guest_claim(name: str, root: Path | None = None) -> Path:
    """Return the claim of a guest, in the store or below `root`; `name` begins with its key."""
    return (root or store_root()) / CLAIMS / name[:2] / name


def kept_outcome(key: str) -> Table | None:
    """Return the outcome that the store keeps under `key`; None if it is missing or damaged."""
    place = outcome_place(key)
    note_use(place)
    document = read_sealed(place, OUTCOME)
    return document.table(OUTCOME) if document else None


def keep_outcome(key: str, outcome: Mapping[str, Json]) -> None:
    """Keep `outcome` under `key` in the store; it is on the disk when this returns."""
    write_atomically(outcome_place(key), sealed(OUTCOME, outcome))


def drop_outcome(key: str) -> None:
    """Remove the outcome of `key` from the store, because it cannot be trusted."""
    outcome_place(key).unlink(missing_ok=True)


def sealed(name: str, contents: Json, **more: Json) -> str:
    """Return a document whose digest covers its `contents`, which it has under `name`."""
    return json.dumps({"digest": digest(contents), name: contents, **more}) + "\n"


def read_sealed(place: Path, name: str) -> Table | None:
    """Return the document that `sealed` made; None if it is missing or damaged."""
    try:
        document = json_object(place.read_text())
    except (OSError, UnicodeDecodeError):
        return None
    if document is None or document.get("digest") != digest(document.get(name)):
        return None
    return Table(place, document)
