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


def _limit(group: Path, limit: str, used: int, files: int) -> None:
    (group / "memory.max").write_text(f"{limit}\n")
    (group / "memory.current").write_text(f"{used}\n")
    (group / "memory.stat").write_text(
        f"anon 1\nfile 99\ninactive_file {files}\nactive_file 10\nslab 5\n"
    )


@pytest.mark.parametrize("outer", [True, False])
def test_memory_is_what_the_smallest_group_has_left(groups: Path, outer: bool) -> None:
    free = available_memory()
    assert free > 1 << 20
    _limit(groups, str(free << 10), 0, 0)
    assert available_memory() <= free * 2
    _limit(groups.parent if outer else groups, str(64 << 20), 40 << 20, 8 << 20)
    _limit(groups if outer else groups.parent, "max", 40 << 20, 0)
    assert available_memory() == (64 - 40 + 8 << 20) + 10
    _limit(groups, "1000", 2000, 0)
    assert available_memory() == 0


@pytest.mark.parametrize(
    ("quota", "allowed"), [("100000 100000", 1), ("50000 100000", 1), ("max 100000", None)]
)
def test_processors_are_those_of_the_quota(groups: Path, quota: str, allowed: int | None) -> None:
    whole = processors()
    (groups.parent / "cpu.max").write_text(f"{quota}\n")
    assert processors() == (allowed or whole)
