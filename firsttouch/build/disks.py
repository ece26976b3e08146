# SPDX-License-Identifier: GPL-2.0
"""The guests' disks: ext4 file systems, the same bytes each time."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from firsttouch.build.store import Entry, digest, digest_file
from firsttouch.build.packages import Closure, obtain_from_closure
from firsttouch.processes import output
from firsttouch.build.programs import build_program
from firsttouch.progress import Reporter
from firsttouch.quantities import format_size

# Where the guest mounts its disk.
_MOUNTED = "/data"
_FILE_NAME = "file"
_IMAGE = "disk.img"
_BLOCK = 4096
# ext4's own: group descriptors, inode tables, bitmaps; ample for what is here.
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
# mke2fs takes an inode's time of change from the file that it copies, where
# nothing can set it. The first inode that is not ext4's own is 12.
_FIRST_INODE = 12
_SET_CHANGED = f"set_inode_field <{{}}> ctime @{_TIME}\n"
# What the packages' scripts would have made, and programs look for.
_ACCOUNTS = {
    "etc/passwd": "root:x:0:0::/tmp:/bin/sh\nnobody:x:65534:65534::/tmp:/bin/sh\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
}
_MOUNT_POINTS = ("dev", "proc", "sys", "tmp", "var/tmp")


@dataclass(frozen=True)
class FileDisk:
    """A disk with one real file of `size` bytes, of which no block is zero."""

    size: int

    @property
    def arguments(self) -> str:
        """What ftbench is told of it."""
        return f"--file {_MOUNTED}/{_FILE_NAME}"

    def obtain(self, reporter: Reporter) -> Path:
        """Return the disk's image. ftbench itself writes the file, and knows it again."""
        ftbench = build_program("bench", reporter, native=True)
        made_from = {"file_size": self.size, "ftbench": digest_file(ftbench)}

        def make(workplace: Path, kept: Path) -> None:
            reporter.say(f"Writing the guest's disk, {format_size(self.size)}")
            folder = _empty_root(workplace)
            output(
                [ftbench, "file-read-fault", "--cache", "warm", "--size", str(self.size),
                 "--file", folder / _FILE_NAME]
            )  # fmt: skip
            _write_image(folder, kept)

        return _entry(made_from).obtain(make, reporter.say) / _IMAGE


@dataclass(frozen=True)
class RootDisk:
    """A disk with Debian packages for arm64, unpacked: none of their code runs here.

    `packages` and what they depend on come from `suite` of the machine's own
    mirror, in the versions that were fetched first.
    """

    suite: str
    packages: tuple[str, ...]

    @property
    def arguments(self) -> str:
        """What ftbench is told of it."""
        return f"--root {_MOUNTED}"

    def obtain(self, reporter: Reporter) -> Path:
        """Return the disk's image; MachineError if the packages cannot be had."""

        def entry(closure: Closure) -> Entry:
            return _entry(
                {
                    "packages": closure.files,
                    "accounts": _ACCOUNTS,
                    "mount_points": _MOUNT_POINTS,
                }
            )

        def make(closure: Closure, workplace: Path, kept: Path) -> None:
            folder = _empty_root(workplace)
            for name in ("bin", "lib", "sbin"):
                (folder / "usr" / name).mkdir(parents=True, exist_ok=True)
                (folder / name).symlink_to(f"usr/{name}")
            closure.unpack(workplace / "archives", folder, reporter)
            for name, text in _ACCOUNTS.items():
                (folder / name).parent.mkdir(exist_ok=True)
                (folder / name).write_text(text)
            for name in _MOUNT_POINTS:
                (folder / name).mkdir(parents=True, exist_ok=True)
            _write_image(folder, kept)

        return obtain_from_closure(self.suite, self.packages, entry, make, reporter) / _IMAGE


Disk = FileDisk | RootDisk


def _entry(made_from: Mapping[str, object]) -> Entry:
    return Entry("disks", digest({**made_from, "mke2fs": _MKE2FS, "debugfs": _SET_CHANGED}))


def _empty_root(workplace: Path) -> Path:
    """Return a directory for what is to be on a disk, without what a killed maker left there."""
    folder = workplace / "root"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def _write_image(folder: Path, kept: Path) -> None:
    """Write into `kept` an ext4 with what is in `folder`, which is used up."""
    folder.chmod(0o755)
    size = _set_times(folder)
    image = kept / _IMAGE
    with image.open("wb") as whole:
        whole.truncate(-(-(size + _OVERHEAD) // _ALIGNMENT) * _ALIGNMENT)
    # mke2fs stamps what it makes with the time of day unless told another.
    now = {"E2FSPROGS_FAKE_TIME": str(_TIME)}
    output([*_MKE2FS, "-d", folder, image], env=now)
    inodes = len({path.lstat().st_ino for path in folder.rglob("*")})
    script = folder.with_name("times")
    script.write_text("".join(_SET_CHANGED.format(_FIRST_INODE + i) for i in range(inodes)))
    output(["debugfs", "-w", "-f", script, image], env=now)
    shutil.rmtree(folder)


def _set_times(folder: Path) -> int:
    """Give all in `folder` one time, and return the bytes of its blocks."""
    size = 0
    for path in (folder, *folder.rglob("*")):
        os.utime(path, (_TIME, _TIME), follow_symlinks=False)
        size += -(-path.lstat().st_size // _BLOCK) * _BLOCK
    return size
