# SPDX-License-Identifier: GPL-2.0
"""Tests that share something expensive run on one worker, release by release; no others do."""

from __future__ import annotations

import pytest

from firsttouch.places import REPOSITORY
from tests.support.scheduling import TOGETHER, scope


@pytest.mark.parametrize(
    ("file", "first", "second", "together"),
    [
        ("tests/linux/test_series.py", "test_a[6.12]", "test_b[6.12]", True),
        ("tests/linux/test_series.py", "test_a[6.12]", "test_a[7.3]", False),
        ("tests/bench/test_guest.py", "test_a[7.3-ldxr]", "test_b[7.3]", True),
        ("tests/linux/test_objections.py", "test_a[x]", "test_a[y]", True),
        ("tests/linux/test_kexec.py", "test_a[6.12-1]", "test_a[6.12-16]", False),
    ],
)
def test_scopes(file: str, first: str, second: str, together: bool) -> None:
    assert (scope(f"{file}::{first}") == scope(f"{file}::{second}")) is together


@pytest.mark.parametrize("file", TOGETHER)
def test_the_files_exist(file: str) -> None:
    assert (REPOSITORY / file).is_file()
