# SPDX-License-Identifier: GPL-2.0
"""A host is as large as the control groups of this process allow."""

from pathlib import Path

import pytest

from firsttouch.building import host_tools
from firsttouch.building.host_tools import available_memory, processors


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a control group within another, in which this process is."""
    inner = tmp_path / "service/job"
    inner.mkdir(parents=True)
    monkeypatch.setattr(host_tools, "_GROUPS", tmp_path)
    read = Path.read_text

    def cgroup(path: Path) -> str:
        return "0::/service/job\n" if str(path) == "/proc/self/cgroup" else read(path)

    monkeypatch.setattr(Path, "read_text", cgroup)
    return inner


def test_memory_is_that_of_the_smallest_group(groups: Path) -> None:
    free = available_memory()
    (groups / "memory.max").write_text("max\n")
    (groups.parent / "memory.max").write_text(f"{64 << 20}\n")
    assert available_memory() == 64 << 20 < free


@pytest.mark.parametrize(
    ("quota", "allowed"), [("100000 100000", 1), ("50000 100000", 1), ("max 100000", None)]
)
def test_processors_are_those_of_the_quota(groups: Path, quota: str, allowed: int | None) -> None:
    whole = processors()
    (groups.parent / "cpu.max").write_text(f"{quota}\n")
    assert processors() == (allowed or whole)
