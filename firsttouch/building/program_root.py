# SPDX-License-Identifier: GPL-2.0
"""The root directory in which a guest runs a program of the user's, and archives of cpio.

Their format is "newc": Documentation/driver-api/early-userspace/buffer-format.rst of the kernel.
"""

from __future__ import annotations

import os
import posixpath
import re
import stat
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath

from firsttouch.building.apt import unpack
from firsttouch.building.programs import ACCOUNTS, MERGED, MOUNT_POINTS
from firsttouch.building.store import Entry
from firsttouch.catalog.experiments import UserProgram
from firsttouch.errors import HostError, UserError
from firsttouch.files import digest, digest_bytes, digest_file
from firsttouch.processes import output
from firsttouch.progress import Reporter

# Where the archive has it, where in it the program starts, and the archive's own name.
_ROOT, _WORK, _ARCHIVE = "root", "work", "root.cpio"
# Bytes of memory that Debian's kernel has for itself, with those for contiguous allocations.
_KERNEL = 120 << 20
# Folders in the order of PATH in bench/program.c, and links after which Linux gives up.
_PATH, _LINKS = ("usr/sbin", "usr/bin", "sbin", "bin"), 40


@dataclass(frozen=True)
class RootArchive:
    """The archive of a program's root: packages or a root of the user's, with copies of files."""

    program: UserProgram

    @property
    def arguments(self) -> str:
        return f"--root /{_ROOT}"

    def stored(self) -> Path | None:
        """Return None: whether the store has it is known when its files have been read."""
        return None

    def obtain(self, reporter: Reporter) -> Path:
        """Return the archive; UserError if it lacks what the program needs, or is too large."""
        with tempfile.TemporaryDirectory(prefix="firsttouch-root-") as scratch:
            members = self._members(Path(scratch), reporter)
            check_program(self.program, members)
            in_root = {f"{_ROOT}/{name}": member for name, member in members.items()}
            recipe = {
                name: [mode, digest_file(data) if isinstance(data, Path) else digest_bytes(data)]
                for name, (mode, data) in in_root.items()
            }

            def make(_: Path, product: Path) -> None:
                with (product / _ARCHIVE).open("wb") as file:
                    file.writelines(write_members(in_root))

            title = f"root directory of {self.program.name}"
            entry = Entry("disks", {"root": digest(recipe)}, title, _ARCHIVE)
            archive = entry.obtain(make, reporter.say)
        # The kernel lets what it unpacks have half of the memory that the archive leaves.
        needed = 3 * archive.stat().st_size + _KERNEL
        if needed > self.program.memory:
            raise UserError(f"{title} is too large: give --memory {-(-needed >> 20)}M at least.")
        return archive

    def _members(self, scratch: Path, reporter: Reporter) -> dict[str, Member]:
        program, given = self.program, self.program.root
        if program.packages:
            given = unpack(program.packages, reporter)
        elif given and not given.is_dir():
            # Devices of a container's are not for this host's user to make.
            words = ["--no-same-owner", "--exclude=dev/*", "--exclude=./dev/*"]
            try:
                output(["tar", "-x", *words, "-f", given.resolve(), "-C", scratch])
            except HostError as error:
                why = f"tar cannot read --root {given}: give a folder or a tar."
                raise UserError(why, error.detail) from None
            given = scratch
        members: dict[str, Member] = {
            **{name: (stat.S_IFLNK | 0o777, f"usr/{name}".encode()) for name in MERGED},
            **{name: (stat.S_IFREG | 0o644, text.encode()) for name, text in ACCOUNTS.items()},
            **dict.fromkeys((*MOUNT_POINTS, _WORK), (DIRECTORY, b"")),
            **(members_of(given) if given else {}),
        }
        for file in program.copies:
            if program.root and file.name in members and program.words[0] == f"./{file.name}":
                raise UserError(
                    f"{file.name} is here and in {program.root}: write /{file.name} for that one, "
                    "or start from another folder."
                )
            copied = (PROGRAM, file.resolve())
            if members.setdefault(f"{_WORK}/{file.name}", copied) != copied:
                raise UserError(f"{file} is not the only {file.name} for /{_WORK}: rename one.")
        return members


def members_of(folder: Path) -> dict[str, Member]:
    """Return all of a folder; modes do not depend on the user's umask."""
    members: dict[str, Member] = {}
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        inside = str(path.relative_to(folder))
        if stat.S_ISLNK(mode):
            members[inside] = (stat.S_IFLNK | 0o777, os.fsencode(path.readlink()))
        elif stat.S_ISDIR(mode):
            # An error for a folder that cannot be read, which rglob() takes for an empty one.
            os.scandir(path).close()
            members[inside] = (DIRECTORY, b"")
        elif stat.S_ISREG(mode):
            members[inside] = (stat.S_IFREG | (0o755 if mode & 0o100 else 0o644), path)
    return members


def check_program(program: UserProgram, members: Mapping[str, Member]) -> None:
    """Raise UserError if the root lacks the command, or what a program of arm64 needs to start."""
    word = program.words[0]
    places = [posixpath.join(folder, word) for folder in ([_WORK] if "/" in word else _PATH)]
    found = [file for place in places if (file := _find(place, members)) is not None]
    if not found:
        raise UserError(
            f"{word} is not in the root directory of the guest: name its package by --packages, "
            "a root by --root, or a file by --copy."
        )
    # Libraries may be in any folder.
    names = {PurePath(name).name for name in members}
    for part in _needed(word, found[0]):
        if (_find(part, members) is None) if "/" in part else part not in names:
            raise UserError(
                f"{word} needs {part}, which the root directory of the guest lacks: add it to "
                "your --root, or its package by --packages, or link the program statically."
            )


def _find(path: str, members: Mapping[str, Member]) -> Path | None:
    """Return where a program or a library is; links to files and to folders are followed."""
    parts, at, links = path.split("/")[::-1], "", 0
    while parts:
        at = posixpath.normpath(posixpath.join("/", at, parts.pop())).strip("/")
        mode, data = members.get(at, (0, b""))
        if stat.S_ISLNK(mode) and isinstance(data, bytes) and (links := links + 1) < _LINKS:
            parts += os.fsdecode(data).split("/")[::-1]
            at = "" if data.startswith(b"/") else posixpath.dirname(at)
    _, data = members.get(at, (0, b""))
    return data if isinstance(data, Path) else None


def _needed(word: str, program: Path) -> list[str]:
    """Return the loader and the libraries of a program, or the interpreter of a script."""
    with program.open("rb") as file:
        line = file.readline(256)
    if not line.startswith(b"\x7fELF"):
        words = line[2:].split() if line.startswith(b"#!") else []
        # Without that line, execvp(3) takes it for a script of the shell.
        return [os.fsdecode(words[0]) if words else "/bin/sh"]
    headers = output(["readelf", "-hldW", program], env={"LC_ALL": "C"})
    if not re.search(r"^ *Machine: +AArch64$", headers, re.M):
        raise UserError(
            f"{word} is not for arm64, and the guest is: compile it with "
            "aarch64-linux-gnu-gcc, or the like."
        )
    return re.findall(r"(?:program interpreter: |\(NEEDED\) .*\[)([^]]+)\]", headers)


DIRECTORY = stat.S_IFDIR | 0o755
PROGRAM = stat.S_IFREG | 0o755
# A member: its mode, and the contents of a file or where they are, or the target of a link.
Member = tuple[int, bytes | Path]


def archive(files: Mapping[str, bytes | Path]) -> bytes:
    """Return an archive of programs by absolute name, and of their directories."""
    return b"".join(write_members({name: (PROGRAM, data) for name, data in files.items()}))


def write_members(members: Mapping[str, Member]) -> Iterator[bytes]:
    """Yield the bytes of an archive of members by name, and of their directories, which precede."""
    given = {name.strip("/"): members[name] for name in sorted(members)}
    folders = {str(folder) for name in given for folder in PurePath(name).parents} - {"."}
    whole = {**dict.fromkeys(sorted(folders), (DIRECTORY, b"")), **given}
    size = 0
    for number, (name, (mode, data)) in enumerate(whole.items(), 1):
        contents = data.read_bytes() if isinstance(data, Path) else data
        yield (member := _record(number, name, mode, contents))
        size += len(member)
    trailer = _record(0, "TRAILER!!!", 0, b"")
    yield trailer + bytes(-(size + len(trailer)) % 512)


def _record(number: int, name: str, mode: int, data: bytes) -> bytes:
    """Return one member; owner, group and time are 0, so that the bytes are reproducible."""
    links = 2 if stat.S_ISDIR(mode) else 1
    # The only device is the console.
    device = (5, 1) if stat.S_ISCHR(mode) else (0, 0)
    path = os.fsencode(name) + b"\0"
    fields = (number, mode, 0, 0, links, 0, len(data), 0, 0, *device, len(path), 0)
    header = b"070701" + b"".join(b"%08X" % field for field in fields) + path
    # Name and data end at multiples of four.
    return header + bytes(-len(header) % 4) + data + bytes(-len(data) % 4)
