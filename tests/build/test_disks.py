# SPDX-License-Identifier: GPL-2.0
"""The guests' disks: whoever makes one, and whenever, gets the same bytes."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from firsttouch.build.store import digest_file
from firsttouch.build.disks import Disk, FileDisk, RootDisk
from firsttouch.progress import Reporter

pytestmark = pytest.mark.kernel


@pytest.mark.parametrize("disk", [FileDisk(1 << 20), RootDisk("trixie", ("busybox-static",))])
def test_a_disk_is_the_same_bytes_each_time(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reporter: Reporter
) -> None:
    digests = set()
    for cache in ("one", "other"):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / cache))
        image = disk.obtain(reporter)
        subprocess.run(["e2fsck", "-fn", image], check=True)
        digests.add(digest_file(image))
        # Times on a disk are in seconds.
        time.sleep(1.1)
    assert len(digests) == 1
