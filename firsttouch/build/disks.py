# SPDX-License-Identifier: GPL-2.0
"""The guests' disks: ext4 file systems, the same bytes whoever makes them, wherever and when."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from firsttouch.build.packages import Closure, known_closure, obtain_from_closure
from firsttouch.build.programs import build_ftbench, stored_program
from firsttouch.build.store import Entry
from firsttouch.catalog.experiments import Packages
from firsttouch.files import digest_file
from firsttouch.processes import output
from firsttouch.progress import Reporter
from firsttouch.quantities import format_size
from firsttouch.tables import Json

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
# mke2fs copies an inode's owner and its time of change from the file, where
# only root can set the one and nothing the other. The first inode that is not
# ext4's own is 12, the root directory's is 2.
_FIRST_INODE = 12
_ROOT_INODE = 2
_SET_INODE = "".join(
    f"set_inode_field <{{0}}> {field} {value}\n"
    for field, value in (("ctime", f"@{_TIME}"), ("uid", 0), ("gid", 0))
)
# What mke2fs goes by beside its arguments: the order of names, the time of day.
# The tools are root's by their place, but a user may run them.
_ENVIRONMENT = {
    "LC_ALL": "C", "TZ": "UTC", "E2FSPROGS_FAKE_TIME": str(_TIME),
    "PATH": f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin",
}  # fmt: skip
# What the packages' scripts would have made, and programs look for.
_ACCOUNTS = {
    "etc/passwd": "root:x:0:0::/tmp:/bin/sh\nnobody:x:65534:65534::/tmp:/bin/sh\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
}
_DIRECTORY, _PROGRAM, _FILE = 0o755, 0o755, 0o644
_MOUNT_POINTS = ("dev", "proc", "sys", "tmp", "var/tmp")


@dataclass(frozen=True)
class FileDisk:
    """A disk with one real file of `size` bytes, of which no block is zero."""

    size: int

    @property
    def arguments(self) -> str:
        """What ftbench is told of it."""
        return f"--file {_MOUNTED}/{_FILE_NAME}"

    @property
    def title(self) -> str:
        """What a person calls the disk."""
        return f"disk with a file of {format_size(self.size)}"

    def _recipe(self, ftbench: Path) -> dict[str, Json]:
        return {"file_size": self.size, "ftbench": digest_file(ftbench)}

    def stored(self) -> Path | None:
        """Return the disk's image if the store has it."""
        ftbench = stored_program("bench", "ftbench", native=True)
        kept = _entry(self._recipe(ftbench), self.title).use() if ftbench else None
        return kept / _IMAGE if kept else None

    def obtain(self, reporter: Reporter) -> Path:
        """Return the disk's image. ftbench itself writes the file, and knows it again."""
        ftbench = build_ftbench(reporter, native=True)

        def make(workplace: Path, kept: Path) -> None:
            reporter.say(f"Writing the guest's disk, {format_size(self.size)}")
            folder = _empty_root(workplace)
            output(
                [ftbench, "file-read-fault", "--cache", "warm", "--size", str(self.size),
                 "--file", folder / _FILE_NAME]
            )  # fmt: skip
            _write_image(folder, kept)

        entry = _entry(self._recipe(ftbench), self.title)
        return entry.obtain(make, reporter.say) / _IMAGE


@dataclass(frozen=True)
class RootDisk:
    """A disk with Debian packages for arm64, unpacked: none of their code runs here.

    They come from the host's own mirror, in the versions that were fetched first.
    """

    packages: Packages

    @property
    def arguments(self) -> str:
        """What ftbench is told of it."""
        return f"--root {_MOUNTED}"

    @property
    def title(self) -> str:
        """What a person calls the disk."""
        return f"disk with {', '.join(self.packages.names)}"

    def _entry(self, closure: Closure) -> Entry:
        recipe: dict[str, Json] = {
            "packages": [listed.sha256 for listed in closure.files],
            "accounts": _ACCOUNTS,
            "mount_points": _MOUNT_POINTS,
        }
        return _entry(recipe, self.title)

    def stored(self) -> Path | None:
        """Return the disk's image if the store has it."""
        known = known_closure(self.packages)
        kept = self._entry(known).use() if known else None
        return kept / _IMAGE if kept else None

    def obtain(self, reporter: Reporter) -> Path:
        """Return the disk's image; HostError if the packages cannot be had."""

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

        return obtain_from_closure(self.packages, self._entry, make, reporter) / _IMAGE


Disk = FileDisk | RootDisk


def _entry(recipe: Mapping[str, Json], title: str) -> Entry:
    made_by: dict[str, Json] = {
        "mke2fs": _MKE2FS, "inodes": _SET_INODE, "modes": [_DIRECTORY, _PROGRAM, _FILE],
    }  # fmt: skip
    return Entry("disks", {**recipe, **made_by}, title)


def _empty_root(workplace: Path) -> Path:
    """Return a directory for what is to be on a disk, without what a killed maker left there."""
    folder = workplace / "root"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def _write_image(folder: Path, kept: Path) -> None:
    """Write into `kept` an ext4 with what is in `folder`, which is used up."""
    size = _make_alike(folder)
    image = kept / _IMAGE
    with image.open("wb") as whole:
        whole.truncate(-(-(size + _OVERHEAD) // _ALIGNMENT) * _ALIGNMENT)
    output([*_MKE2FS, "-d", folder, image], env=_ENVIRONMENT)
    inodes = len({path.lstat().st_ino for path in folder.rglob("*")})
    script = folder.with_name("inodes")
    script.write_text(
        "".join(
            _SET_INODE.format(number)
            for number in (_ROOT_INODE, *range(_FIRST_INODE, _FIRST_INODE + inodes))
        )
    )
    output(["debugfs", "-w", "-f", script, image], env=_ENVIRONMENT)
    shutil.rmtree(folder)


def _make_alike(folder: Path) -> int:
    """Give all in `folder` one time and modes that no umask decides; return the bytes of blocks."""
    size = 0
    for path in (folder, *sorted(folder.rglob("*"))):
        if not path.is_symlink():
            program = path.stat().st_mode & 0o100
            path.chmod(_DIRECTORY if path.is_dir() else _PROGRAM if program else _FILE)
        os.utime(path, (_TIME, _TIME), follow_symlinks=False)
        size += -(-path.lstat().st_size // _BLOCK) * _BLOCK
    return size
