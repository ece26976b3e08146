# SPDX-License-Identifier: GPL-2.0
"""A small disk that a test can fill."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def small_disk(path: Path, size: int) -> Iterator[Path]:
    """Mount a disk of `size` bytes at the directory `path` while the context lasts, as root."""
    path.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", path], check=True)
    try:
        yield path
    finally:
        subprocess.run(["umount", "--lazy", path], check=True)
