# SPDX-License-Identifier: GPL-2.0
"""How long things took on this host, in one small file of the store, to estimate the next run by.

The last time counts. Two runs that write at once may lose one of the times,
which does no harm.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from firsttouch.build.host_tools import processors
from firsttouch.build.store import store_root
from firsttouch.errors import UserError
from firsttouch.files import write_atomically
from firsttouch.tables import dump_json, parse_json

_FILE = "durations.json"
# Before anything was measured here, in seconds: one CPU for one object file of
# a kernel, and a guest. Of an x86-64 host at 2.5 GHz, to the nearest round number.
_OBJECT = 1.0
GUEST = 10.0


def read_durations() -> dict[str, float]:
    """Return the seconds that things took on this host, by what was done."""
    place = store_root() / _FILE
    with contextlib.suppress(OSError, UserError):
        return parse_json(place.read_text(), place).numbers()
    return {}


def note_durations(seconds: Mapping[str, float]) -> None:
    """Note how long things took; a store that cannot be written is no error here."""
    rounded = {name: round(value, 1) for name, value in seconds.items()}
    with contextlib.suppress(OSError):
        write_atomically(store_root() / _FILE, dump_json({**read_durations(), **rounded}))


def image_duration(release: str) -> str:
    """Return what the build of a kernel image of `release` is noted under."""
    return f"image {release}"


def guest_duration(experiment: str, size: object) -> str:
    """Return what a guest of `experiment` is noted under; `size` is what it maps, if anything."""
    return f"guest {experiment} {size}"


def default_image_duration(objects: int) -> float:
    """Return the seconds that a build of so many objects takes where none was measured."""
    return objects * _OBJECT / processors()
