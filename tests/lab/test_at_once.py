# SPDX-License-Identifier: GPL-2.0
"""How many guests run at once: as many as CPUs and memory allow, or as the user says."""

import os
from pathlib import Path

import pytest

from firsttouch.lab.run import guests_at_once
from firsttouch.vm.guest import MEMORY


def _memory(monkeypatch: pytest.MonkeyPatch, guests: float) -> None:
    """Make the host report memory for this number of guests."""
    real = Path.read_text

    def read(path: Path, *arguments: object, **more: object) -> str:
        if path == Path("/proc/meminfo"):
            return f"MemTotal: 1 kB\nMemAvailable:   {int(guests * MEMORY) >> 10} kB\n"
        return real(path, *arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "read_text", read)


@pytest.mark.parametrize(
    ("cpus", "room", "at_once"), [(1, 100, 1), (8, 100, 8), (8, 2.5, 2), (8, 0.1, 1), (3, 3, 3)]
)
def test_as_many_guests_as_cpus_and_memory_allow(
    monkeypatch: pytest.MonkeyPatch, cpus: int, room: float, at_once: int
) -> None:
    """CPUs are those that this process may use, not all that the host has."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cpus)))
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    _memory(monkeypatch, room)
    assert guests_at_once(None) == at_once
