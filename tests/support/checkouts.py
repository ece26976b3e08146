# SPDX-License-Identifier: GPL-2.0
"""Copies of the checkout, for tests that change it."""

import shutil
from pathlib import Path

from firsttouch.files import REPOSITORY

# What `firsttouch` reads and builds.
_FOLDERS = (
    "firsttouch", "experiments", "machines", "architectures", "arms", "linux", "bench", "guest",
    "pmu",
)  # fmt: skip


def copy_checkout(to: Path) -> Path:
    """Copy the checkout to `to`, which may be there, and return it."""
    for name in _FOLDERS:
        shutil.copytree(REPOSITORY / name, to / name, symlinks=True,
                        ignore=shutil.ignore_patterns("__pycache__"))  # fmt: skip
    return to
