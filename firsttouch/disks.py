# SPDX-License-Identifier: GPL-2.0
"""The guest's disk: an ext4 file system with one real file, the same bytes each time."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from firsttouch.cache import Entry, digest, digest_file
from firsttouch.processes import output
from firsttouch.programs import build_program
from firsttouch.progress import Reporter
from firsttouch.quantities import format_size

# What the guest finds under /data.
FILE_NAME = "file"
_BLOCK = 4096
# ext4's own: group descriptors, inode tables, bitmaps; ample for one file.
_OVERHEAD = 64 << 20
# A RAM-backed disk is mapped in sections of this size.
_ALIGNMENT = 128 << 20
# 2026-01-01, as the guest's clock.
_TIME = 1767225600
_MKE2FS = (
    "mke2fs", "-q", "-F", "-t", "ext4", "-b", str(_BLOCK), "-m", "0",
    # No journal: the guest mounts it read-only. Nothing that varies.
    "-O", "^has_journal,^metadata_csum_seed", "-U", "b2a14c04-5f39-4a0d-9c05-6d1f0f0c0de5",
    "-E", "hash_seed=b2a14c04-5f39-4a0d-9c05-6d1f0f0c0de5,lazy_itable_init=0,root_owner=0:0",
)  # fmt: skip


def disk_size(file_size: int) -> int:
    """Return the bytes of a disk that holds a file of `file_size` bytes."""
    return -(-(file_size + _OVERHEAD) // _ALIGNMENT) * _ALIGNMENT


def build_disk(file_size: int, reporter: Reporter) -> Path:
    """Return a disk image with a file of `file_size` bytes, of which no block is zero.

    ftbench itself writes the file, and knows it again in the guest.
    """
    ftbench = build_program("bench", reporter, native=True)
    entry = Entry(
        "disks",
        digest({"file_size": file_size, "mke2fs": _MKE2FS, "ftbench": digest_file(ftbench)}),
    )

    def make(workplace: Path, kept: Path) -> None:
        folder = workplace / "root"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        file = folder / FILE_NAME
        reporter.say(f"Writing the guest's disk, {format_size(file_size)}")
        output(
            [ftbench, "file-read-fault", "--cache", "warm", "--size", str(file_size),
             "--file", file]
        )  # fmt: skip
        for path in (file, folder):
            path.chmod(0o755 if path.is_dir() else 0o644)
            os.utime(path, (_TIME, _TIME))
        image = kept / "disk.img"
        with image.open("wb") as whole:
            whole.truncate(disk_size(file_size))
        # mke2fs stamps what it makes with the time of day unless told another.
        output([*_MKE2FS, "-d", folder, image], env={"E2FSPROGS_FAKE_TIME": str(_TIME)})
        shutil.rmtree(folder)

    return entry.obtain(make, reporter.say) / "disk.img"
