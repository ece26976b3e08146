# SPDX-License-Identifier: GPL-2.0
"""ftbench is written in the kernel's style: checkpatch.pl --strict has nothing to say."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from firsttouch.building.source import KernelSource
from tests.bench.conftest import BENCH


@pytest.mark.kernel
def test_checkpatch_is_silent(sources: Callable[[str], KernelSource]) -> None:
    checkpatch = sources("6.12").tree() / "scripts/checkpatch.pl"
    files = sorted(path.relative_to(BENCH) for path in BENCH.rglob("*.[ch]"))
    assert files
    # This folder's .checkpatch.conf says which checks are left out and why.
    done = subprocess.run(
        [checkpatch, "-q", "-f", *files], cwd=BENCH, capture_output=True, text=True, check=False
    )
    assert done.stdout == ""
    assert done.returncode == 0, done.stderr
