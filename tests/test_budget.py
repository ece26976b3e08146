# SPDX-License-Identifier: GPL-2.0
"""`--minutes N`: tests that were not started are counted, and the run is not green."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from firsttouch.places import REPOSITORY

pytestmark = pytest.mark.long

_CONFTEST = "from tests.support.budget import pytest_addoption, pytest_configure\n"
_TESTS = """\
import pytest

@pytest.mark.parametrize("number", range(4))
def test_one(number):
    pass
"""


def _run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text(_CONFTEST)
    (folder / "test_four.py").write_text(_TESTS)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_no_test_begins_after_the_deadline(tmp_path: Path, workers: str) -> None:
    done = _run(tmp_path, workers, "--minutes", "0")
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "4 tests were not run for want of time" in done.stdout
    assert "4 not run" in done.stdout


@pytest.mark.parametrize("options", [["--minutes", "60"], []])
def test_a_run_that_ends_in_time_is_green(tmp_path: Path, options: list[str]) -> None:
    done = _run(tmp_path, "-n2", *options)
    assert done.returncode == pytest.ExitCode.OK
    assert "4 passed" in done.stdout
    assert "not run" not in done.stdout
