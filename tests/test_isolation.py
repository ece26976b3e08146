# SPDX-License-Identifier: GPL-2.0
"""The tests see the project's machines, experiments and arms, and none of who runs them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from firsttouch.building.store import store_root
from firsttouch.places import REPOSITORY, users_folder
from tests.conftest import Firsttouch


def test_no_entry_of_ones_own_is_found(firsttouch: Firsttouch) -> None:
    assert not users_folder().exists()
    done = firsttouch("lab", "--list")
    assert done.returncode == 0, done.stdout
    entries = {line.split()[0] for line in done.stdout.splitlines() if line.startswith("  ")}
    assert {"populate", "neoverse-n1", "stock", "6.12"} < entries
    assert "mine" not in entries


@pytest.mark.long
@pytest.mark.parametrize("variable", ["HOME", "XDG_CONFIG_HOME"])
def test_the_entries_of_who_runs_the_tests_are_not_found(tmp_path: Path, variable: str) -> None:
    config = tmp_path / ".config" if variable == "HOME" else tmp_path
    (config / "firsttouch/arms").mkdir(parents=True)
    (config / "firsttouch/arms/mine.toml").write_text("title = ")
    environment = {name: os.environ[name] for name in os.environ if name != "XDG_CONFIG_HOME"}
    # Another home has another store, in which all would be built again.
    environment["XDG_CACHE_HOME"] = str(store_root().parent)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n0", "-p", "no:cacheprovider",
         f"{__file__}::{test_no_entry_of_ones_own_is_found.__name__}"],
        cwd=REPOSITORY, env={**environment, variable: str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
