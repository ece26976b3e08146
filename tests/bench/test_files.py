# SPDX-License-Identifier: GPL-2.0
"""--files: what the kernel reports about a machine, as one line of JSON."""

import os
from pathlib import Path

from tests.bench.conftest import Ftbench


def test_files_are_shown_as_they_are(ftbench: Ftbench, tmp_path: Path) -> None:
    (tmp_path / "a").write_text('quote " and \\ and tab\t\n')
    (tmp_path / "b1").write_text("one")
    (tmp_path / "b2").write_text("x" * 100_000)
    # What cannot be read is left out.
    (tmp_path / "b3").mkdir()
    line = ftbench.line("--files", "/nowhere/*", f"{tmp_path}/a", f"{tmp_path}/b*", "/proc/version")
    assert line["page_size"] == os.sysconf("SC_PAGESIZE")
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE")
    assert 0 < line["memory_available"] <= physical
    assert line["files"] == {
        f"{tmp_path}/a": 'quote " and \\ and tab\t\n',
        f"{tmp_path}/b1": "one",
        f"{tmp_path}/b2": "x" * 65535,
        "/proc/version": Path("/proc/version").read_text(),
    }
