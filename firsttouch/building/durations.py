# SPDX-License-Identifier: GPL-2.0
"""How long builds and guests took on this host, to estimate the time of the next run.

One small file of the store has the last duration of each. If two runs write
at once, one of the durations may be lost, which is harmless.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from firsttouch.building.host_tools import processors
from firsttouch.building.store import store_root
from firsttouch.errors import UserError
from firsttouch.files import write_atomically
from firsttouch.tables import dump_json, parse_json

_FILE = "durations.json"
# Seconds that one CPU takes for one object file of a kernel, and that a guest
# takes, until this host has measured them. Rounded from an x86-64 host at 2.5 GHz.
OBJECT = 1.0
GUEST = 10.0


def read_durations() -> dict[str, float]:
    """Return the seconds that builds and guests took on this host, by name."""
    place = store_root() / _FILE
    with contextlib.suppress(OSError, UserError):
        return parse_json(place.read_text(), place).numbers()
    return {}


def note_durations(seconds: Mapping[str, float]) -> None:
    """Note durations in seconds, by name; a store that cannot be written is not an error here."""
    rounded = {name: round(value, 1) for name, value in seconds.items()}
    with contextlib.suppress(OSError):
        write_atomically(store_root() / _FILE, dump_json({**read_durations(), **rounded}))


def image_duration(release: str) -> str:
    """Return the name under which the duration of an image's build is noted."""
    return f"image {release}"


def guest_duration(experiment: str, size: object) -> str:
    """Return the name under which a guest's duration is noted; `size` is the memory it maps."""
    return f"guest {experiment} {size}"


def default_image_duration(objects: int) -> float:
    """Return an estimate, in seconds, for a build of `objects` on a host that has built none."""
    return objects * OBJECT / processors()
