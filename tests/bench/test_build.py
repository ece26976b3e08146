# SPDX-License-Identifier: GPL-2.0
"""The binary's hash names the cells it measured: the same source must give the same bytes."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from firsttouch.build.compiler import cross_compile
from tests.bench.conftest import BENCH, Ftbench, make_ftbench


def test_same_bytes_from_another_folder(arm64_ftbench: Path, tmp_path: Path) -> None:
    copy = tmp_path / "somewhere-else" / "bench"
    shutil.copytree(BENCH, copy, ignore=shutil.ignore_patterns("build"))
    again = make_ftbench(cross_compile(), tmp_path / "objects", copy)
    assert again.read_bytes() == arm64_ftbench.read_bytes()


def test_static(ftbench: Ftbench, arm64_ftbench: Path) -> None:
    for path in (ftbench.path, arm64_ftbench):
        headers = subprocess.run(
            ["readelf", "-l", path], capture_output=True, text=True, check=True
        ).stdout
        assert "INTERP" not in headers


def test_another_architecture_is_refused(tmp_path: Path) -> None:
    compiler = tmp_path / "vax-gcc"
    compiler.write_text("#!/bin/sh\necho vax-dec-netbsdelf\n")
    compiler.chmod(0o755)
    done = subprocess.run(
        ["make", "-s", "-C", BENCH, "CROSS_COMPILE=vax-", f"OUTPUT={tmp_path}"],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert 'for "vax-dec-netbsdelf": set CROSS_COMPILE' in done.stderr
