# SPDX-License-Identifier: GPL-2.0
"""The guests' disks: ext4 file systems whose bytes depend on no user, host or time."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from firsttouch.building.apt import Closure, last_closure, obtain_from_closure
from firsttouch.building.programs import build_ftbench, ftbench
from firsttouch.building.store import Entry
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
# Bytes for ext4's group descriptors, inode tables and bitmaps; more than these disks need.
_OVERHEAD = 64 << 20
# The kernel maps a RAM-backed disk in sections of this size.
_ALIGNMENT = 128 << 20
# 2026-01-01, the start of the guest's clock, in seconds since the epoch.
_TIME = 1767225600
_MKE2FS = (
    "mke2fs", "-q", "-F", "-t", "ext4", "-b", str(_BLOCK), "-m", "0",
    # No journal, since the guest mounts the disk read-only; fixed identifiers.
    "-O", "^has_journal,^metadata_csum_seed", "-U", "b2a14c04-5f39-4a0d-9c05-6d1f0f0c0de5",
    "-E", "hash_seed=b2a14c04-5f39-4a0d-9c05-6d1f0f0c0de5,lazy_itable_init=0,root_owner=0:0",
)  # fmt: skip
# mke2fs copies an inode's owner and ctime from the source file. Only root could
# set the owner there, and nobody the ctime, so debugfs sets both in the image.
# Inode 2 is the root directory; inodes up to 11 are reserved by ext4.
_FIRST_INODE = 12
_ROOT_INODE = 2
_SET_INODE = "".join(
    f"set_inode_field <{{0}}> {field} {value}\n"
    for field, value in (("ctime", f"@{_TIME}"), ("uid", 0), ("gid", 0))
)
# mke2fs also depends on the locale (order of names), the time zone and the time.
# The tools are in sbin, which a user's PATH may lack.
_ENVIRONMENT = {
    "LC_ALL": "C", "TZ": "UTC", "E2FSPROGS_FAKE_TIME": str(_TIME),
    "PATH": f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin",
}  # fmt: skip
# Files that programs need and that the packages' scripts would have made.
ACCOUNTS = {
    "etc/passwd": "root:x:0:0::/tmp:/bin/sh\nnobody:x:65534:65534::/tmp:/bin/sh\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
}
_DIRECTORY, _PROGRAM, _FILE = 0o755, 0o755, 0o644
MOUNT_POINTS = ("dev", "proc", "sys", "tmp", "var/tmp")


@dataclass(frozen=True)
class FileDisk:
    """A disk with one file of `size` bytes that has no hole and no zero block."""

    size: int

    @property
    def arguments(self) -> str:
        """The options by which ftbench finds the file."""
        return f"--file {_MOUNTED}/{_FILE_NAME}"

    @property
    def title(self) -> str:
        return f"disk with a file of {format_size(self.size)}"

    def _recipe(self, ftbench: Path) -> dict[str, Json]:
        return {"file_size": self.size, "ftbench": digest_file(ftbench)}

    def stored(self) -> Path | None:
        writer = ftbench(native=True).stored()
        product = _entry(self._recipe(writer), self.title).use() if writer else None
        return product / _IMAGE if product else None

    def obtain(self, reporter: Reporter) -> Path:
        """Return the disk's image. ftbench writes the file, and recognizes it in the guest."""
        ftbench = build_ftbench(reporter, native=True)

        def make(workplace: Path, product: Path) -> None:
            reporter.say(f"Writing the guest's disk, {format_size(self.size)}")
            folder = workplace / "root"
            folder.mkdir()
            output(
                [ftbench, "file-read-fault", "--cache", "warm", "--size", str(self.size),
                 "--file", folder / _FILE_NAME]
            )  # fmt: skip
            _write_image(folder, product)

        entry = _entry(self._recipe(ftbench), self.title)
        return entry.obtain(make, reporter.say) / _IMAGE


@dataclass(frozen=True)
class RootDisk:
    """A disk with Debian packages for arm64, unpacked; the host runs none of their code.

    The packages come from the host's own mirror, in the versions that were
    fetched first.
    """

    packages: Packages

    @property
    def arguments(self) -> str:
        """The options by which ftbench finds the packages."""
        return f"--root {_MOUNTED}"

    @property
    def title(self) -> str:
        return f"disk with {', '.join(self.packages.names)}"

    def _entry(self, closure: Closure) -> Entry:
        recipe: dict[str, Json] = {
            "packages": [listed.sha256 for listed in closure.files],
            "accounts": ACCOUNTS,
            "mount_points": MOUNT_POINTS,
        }
        return _entry(recipe, self.title)

    def stored(self) -> Path | None:
        closure = last_closure(self.packages)
        product = self._entry(closure).use() if closure else None
        return product / _IMAGE if product else None

    def obtain(self, reporter: Reporter) -> Path:
        """Return the disk's image; HostError if the packages cannot be fetched."""

        def make(closure: Closure, workplace: Path, product: Path) -> None:
            folder = workplace / "root"
            folder.mkdir()
            for name in ("bin", "lib", "sbin"):
                (folder / "usr" / name).mkdir(parents=True, exist_ok=True)
                (folder / name).symlink_to(f"usr/{name}")
            closure.unpack(workplace / "archives", folder, reporter)
            for name, text in ACCOUNTS.items():
                (folder / name).parent.mkdir(exist_ok=True)
                (folder / name).write_text(text)
            for name in MOUNT_POINTS:
                (folder / name).mkdir(parents=True, exist_ok=True)
            _write_image(folder, product)

        return obtain_from_closure(self.packages, self._entry, make, reporter) / _IMAGE


def _entry(recipe: Mapping[str, Json], title: str) -> Entry:
    made_by: dict[str, Json] = {
        "mke2fs": _MKE2FS, "inodes": _SET_INODE, "modes": [_DIRECTORY, _PROGRAM, _FILE],
    }  # fmt: skip
    return Entry("disks", {**recipe, **made_by}, title)


def _write_image(folder: Path, product: Path) -> None:
    """Write an ext4 image with the contents of `folder` into `product`."""
    size = 0
    # The modes must not depend on the user's umask.
    for path in (folder, *sorted(folder.rglob("*"))):
        if not path.is_symlink():
            program = path.stat().st_mode & 0o100
            path.chmod(_DIRECTORY if path.is_dir() else _PROGRAM if program else _FILE)
        os.utime(path, (_TIME, _TIME), follow_symlinks=False)
        size += -(-path.lstat().st_size // _BLOCK) * _BLOCK
    image = product / _IMAGE
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
