# SPDX-License-Identifier: GPL-2.0
"""What guests run, but for kernels: programs of this project, and disks.

The store keeps programs under the digest of their sources and of the tools. A disk is an ext4 file
system whose bytes depend on no user, host or time.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from firsttouch.building.apt import Files, Unpacked
from firsttouch.building.host_tools import cross_compile, toolchain, version
from firsttouch.building.store import Entry
from firsttouch.catalog.kernels import DEFAULT_ARCHITECTURE
from firsttouch.errors import BuildError, HostError
from firsttouch.files import REPOSITORY, digest_file, digest_files
from firsttouch.processes import output
from firsttouch.progress import Reporter
from firsttouch.quantities import format_size
from firsttouch.tables import Json

# In the place of an architecture.
HOST = "this host"
# Orders of ftbench's objects, and by how many objects each begins after the one before.
ORDERS, _APART = 4, 8
_SOURCES = {".c", ".h", ".S", ".ld", ".sh", ""}


@dataclass(frozen=True)
class Program:
    """A program of this project: `product` of the Makefile of `folder`, for `architecture` or HOST.

    `order` is that of ftbench's objects, less than `ORDERS`.
    """

    folder: str
    product: str
    architecture: str = DEFAULT_ARCHITECTURE
    order: int = 0

    @property
    def _prefix(self) -> str:
        return "" if self.architecture == HOST else cross_compile(self.architecture)

    @property
    def _variables(self) -> list[str]:
        # No -g: debug information names the folder of the build.
        words = ["CFLAGS=-O2"] if self == PMU else []
        return [*words, f"FIRST={1 + self.order * _APART}"] if self.order else words

    def _entry(self) -> Entry:
        folder = REPOSITORY / self.folder
        files = (file for file in folder.rglob("*") if file.suffix in _SOURCES and file.is_file())
        recipe: dict[str, Json] = {
            "sources": digest_files(folder, files),
            "tools": toolchain(self._prefix),
            "variables": self._variables,
        }
        if self == PMU:
            # The plugin is built for one version of QEMU.
            recipe["qemu"] = version()
        return Entry("programs", recipe, f"{self.product} for {self.architecture}", self.product)

    def stored(self) -> Path | None:
        return self._entry().use()

    def obtain(self, reporter: Reporter) -> Path:
        return self._entry().obtain(self._build, reporter.say)

    def _build(self, workplace: Path, product: Path) -> None:
        """Run make in a copy, with relative paths only: a blank in a path would end it."""
        copy, objects = workplace / "source", workplace / "objects"
        objects.mkdir()
        output(["cp", "-r", REPOSITORY / self.folder, copy])
        # The folder may be read-only; the copy's folders must not be.
        output(["chmod", "-R", "u+w", copy])
        words = [f"CROSS_COMPILE={self._prefix}", "OUTPUT=../objects", *self._variables]
        try:
            output(["make", "-s", *words], cwd=copy, env={"LC_ALL": "C"})
        except HostError as error:
            raise BuildError(
                f"{self.folder} failed to build; compiler errors below.", error.detail
            ) from None
        shutil.copy(objects / self.product, product)


INIT = Program("guest", "init")
PMU = Program("pmu", "libftpmu.so", HOST)
# Static, for guests of arm64 and for this host.
BENCH, RECORDER = Program("bench", "ftbench"), Program("recorder", "ftrecord")
HOST_BENCH, HOST_RECORDER = (replace(program, architecture=HOST) for program in (BENCH, RECORDER))


def ftbench_list(reporter: Reporter) -> str:
    """Return the output of ``ftbench --list=json`` on this host: all that it can measure."""
    return output([HOST_BENCH.obtain(reporter), "--list=json"])


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
# mke2fs copies an inode's owner and ctime from the source file. Only root could set the owner
# there, and nobody the ctime, so debugfs sets both in the image, but for inodes that ext4 reserves.
_ROOT_INODE, _FIRST_INODE = 2, 12
_SET_INODE = "".join(
    f"set_inode_field <{{0}}> {field} {value}\n"
    for field, value in (("ctime", f"@{_TIME}"), ("uid", 0), ("gid", 0))
)
# mke2fs depends on these, too. The tools are in sbin, which a user's PATH may lack.
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
MERGED = ("bin", "lib", "sbin")
MOUNT_POINTS = ("dev", "proc", "sys", "tmp", "var/tmp")


@dataclass(frozen=True)
class FileDisk:
    """A disk with one file of `size` bytes that has no hole and no zero block."""

    size: int

    @property
    def arguments(self) -> str:
        return f"--file {_MOUNTED}/{_FILE_NAME}"

    def _entry(self, ftbench: Path) -> Entry:
        recipe: dict[str, Json] = {"file_size": self.size, "ftbench": digest_file(ftbench)}
        return _entry(recipe, f"disk with a file of {format_size(self.size)}")

    def stored(self) -> Path | None:
        writer = HOST_BENCH.stored()
        return self._entry(writer).use() if writer else None

    def obtain(self, reporter: Reporter) -> Path:
        """Return the disk's image. ftbench writes the file, and recognizes it in the guest."""
        ftbench = HOST_BENCH.obtain(reporter)

        def make(workplace: Path, product: Path) -> None:
            reporter.say(f"Writing the guest's disk, {format_size(self.size)}")
            folder = workplace / "root"
            folder.mkdir()
            output(
                [ftbench, "file-read-fault", "--cache", "warm", "--size", str(self.size),
                 "--file", folder / _FILE_NAME]
            )  # fmt: skip
            _write_image(folder, product)

        return self._entry(ftbench).obtain(make, reporter.say)


@dataclass(frozen=True)
class RootDisk(Unpacked):
    """A disk with Debian packages, unpacked; the host runs none of their code."""

    merged = MERGED

    @property
    def arguments(self) -> str:
        return f"--root {_MOUNTED}"

    def entry(self, files: Files) -> Entry:
        recipe: dict[str, Json] = {
            "packages": [file.sha256 for file in files],
            "accounts": ACCOUNTS,
            "mount_points": MOUNT_POINTS,
        }
        return _entry(recipe, f"disk with {', '.join(self.packages.names)}")

    def make(self, unpacked: Path, product: Path) -> None:
        complete_root(unpacked)
        _write_image(unpacked, product)


def complete_root(folder: Path) -> None:
    """Add the accounts and the mount points that programs need, next to unpacked packages."""
    for name, text in ACCOUNTS.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    for name in MOUNT_POINTS:
        (folder / name).mkdir(parents=True, exist_ok=True)


def _entry(recipe: Mapping[str, Json], title: str) -> Entry:
    made_by: dict[str, Json] = {
        "mke2fs": _MKE2FS, "inodes": _SET_INODE, "modes": [_DIRECTORY, _PROGRAM, _FILE],
    }  # fmt: skip
    return Entry("disks", {**recipe, **made_by}, title, _IMAGE)


def _write_image(folder: Path, product: Path) -> None:
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
    numbers = (_ROOT_INODE, *range(_FIRST_INODE, _FIRST_INODE + inodes))
    script = folder.with_name("inodes")
    script.write_text("".join(_SET_INODE.format(number) for number in numbers))
    output(["debugfs", "-w", "-f", script, image], env=_ENVIRONMENT)
