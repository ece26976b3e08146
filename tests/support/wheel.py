# SPDX-License-Identifier: GPL-2.0
"""The wheel of this checkout, as pip builds it."""

import shutil
import subprocess
import sys
from pathlib import Path

from firsttouch.files import REPOSITORY


def build_wheel(folder: Path) -> Path:
    """Build the wheel as `pip install .` does, with the backend of requirements.lock."""
    # Built from a copy, without untracked files of the checkout.
    copy = folder / "source"
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=REPOSITORY, capture_output=True, text=True, check=True,
    ).stdout.split("\0")  # fmt: skip
    for name in filter(None, listed):
        if (REPOSITORY / name).is_file() and not (REPOSITORY / name).is_symlink():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / name, copy / name)
    done = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-index",
         "--no-build-isolation", "-w", folder, copy],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"no wheel was built; ./setup installs hatchling: {done.stderr}"
    (wheel,) = folder.glob("*.whl")
    return wheel
