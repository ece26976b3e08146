# SPDX-License-Identifier: GPL-2.0
"""The root directory in which a guest runs a program of the user's, and archives of cpio.

Their format is "newc": Documentation/driver-api/early-userspace/buffer-format.rst of the kernel.
"""

from __future__ import annotations

import os
import posixpath
import stat
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from firsttouch.building.apt import unpack
from firsttouch.building.programs import ACCOUNTS, MERGED, MOUNT_POINTS
from firsttouch.building.store import Entry
from firsttouch.catalog.experiments import UserProgram
from firsttouch.errors import UserError
from firsttouch.files import digest, digest_bytes, digest_file
from firsttouch.processes import output
from firsttouch.progress import Reporter

# Where the archive has it, and where in it the program starts.
_ROOT, _WORK = "root", "work"
_PATH = ("usr/sbin", "usr/bin", "sbin", "bin")
# More than Linux follows.
_LINKS = 40
_ARCHIVE = "root.cpio"


@dataclass(frozen=True)
class RootArchive:
    """The archive of a program's root: packages or a root of the user's, with copies of files."""

    program: UserProgram

    @property
    def arguments(self) -> str:
        """The options by which ftbench finds the root."""
        return f"--root /{_ROOT}"

    @property
    def title(self) -> str:
        return f"root directory of {self.program.name}"

    def stored(self) -> Path | None:
        """Return None: whether the store has it is known when its files have been read."""
        return None

    def obtain(self, reporter: Reporter) -> Path:
        """Return the archive.

        Raises UserError for a command, a loader or a library that the root lacks, and
        HostError if packages cannot be fetched.
        """
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
                    file.writelines(write_members(with_folders(in_root)))

            entry = Entry("disks", {"root": digest(recipe)}, self.title)
            return entry.obtain(make, reporter.say) / _ARCHIVE

    def _members(self, scratch: Path, reporter: Reporter) -> dict[str, Member]:
        program, given = self.program, self.program.root
        if program.packages:
            given = unpack(program.packages, reporter)
        elif given and not given.is_dir():
            # Devices of a container's are not for this host's user to make.
            words = ["--no-same-owner", "--exclude=dev/*", "--exclude=./dev/*"]
            output(["tar", "-x", *words, "-f", given.resolve(), "-C", scratch])
            given = scratch
        members = members_of(given) if given else {}
        for name in MERGED:
            members.setdefault(name, (stat.S_IFLNK | 0o777, f"usr/{name}".encode()))
        for name, text in ACCOUNTS.items():
            members.setdefault(name, (stat.S_IFREG | 0o644, text.encode()))
        for name in (*MOUNT_POINTS, _WORK):
            members.setdefault(name, (DIRECTORY, b""))
        for file in program.copies:
            members[f"{_WORK}/{file.name}"] = (PROGRAM, file.resolve())
        return members


def members_of(folder: Path) -> dict[str, Member]:
    """Return all of a folder; modes do not depend on the user's umask."""
    members: dict[str, Member] = {}
    for top, folders, files in os.walk(folder):
        for name in sorted([*folders, *files]):
            path = Path(top, name)
            mode = path.lstat().st_mode
            inside = str(path.relative_to(folder))
            if stat.S_ISLNK(mode):
                members[inside] = (stat.S_IFLNK | 0o777, os.fsencode(path.readlink()))
            elif stat.S_ISDIR(mode):
                members[inside] = (DIRECTORY, b"")
            elif stat.S_ISREG(mode):
                members[inside] = (stat.S_IFREG | (0o755 if mode & 0o100 else 0o644), path)
    return members


def check_program(program: UserProgram, members: Mapping[str, Member]) -> None:
    """Raise UserError if the root lacks the command, or what a program of arm64 needs to start."""
    word = program.words[0]
    places = [posixpath.join(_WORK, word)] if "/" in word else [f"{p}/{word}" for p in _PATH]
    file = next((f for place in places if (f := _resolve(place, members))), None)
    if not file:
        raise UserError(
            f"{word} is not in the root directory of the guest: name its package by --packages, "
            "a root by --root, or a file by --copy."
        )
    for missing in _missing_parts(word, members[file][1], members):
        raise UserError(
            f"{word} needs {missing}, which the root directory of the guest lacks: add its "
            "package by --packages, or link the program statically."
        )


def _resolve(name: str, members: Mapping[str, Member]) -> str:
    """Return the file that a name leads to, through links; "" if there is none."""
    parts, done, links = name.lstrip("/").split("/"), "", 0
    while parts:
        done = posixpath.normpath(posixpath.join(done, parts.pop(0))).lstrip("/")
        mode, data = members.get(done, (0, b""))
        if stat.S_ISLNK(mode) and isinstance(data, bytes):
            links += 1
            if links > _LINKS:
                return ""
            to = os.fsdecode(data)
            parts = [*to.lstrip("/").split("/"), *parts]
            done = "" if to.startswith("/") else posixpath.dirname(done)
    return done if stat.S_ISREG(members.get(done, (0, b""))[0]) else ""


def _missing_parts(word: str, data: bytes | Path, members: Mapping[str, Member]) -> list[str]:
    """Return the loader and libraries of a program that the root lacks; none for a script."""
    if not isinstance(data, Path):
        return []
    # Few requests need it, and it takes as long to import as they take.
    from elftools.common.exceptions import ELFError
    from elftools.elf.dynamic import DynamicSection
    from elftools.elf.elffile import ELFFile
    from elftools.elf.segments import InterpSegment

    with data.open("rb") as file:
        try:
            elf = ELFFile(file)
        except ELFError:
            return []
        if elf["e_machine"] != "EM_AARCH64":
            raise UserError(
                f"{word} is not for arm64, and the guest is: compile it with "
                "aarch64-linux-gnu-gcc, or the like."
            )
        loaders = [s.get_interp_name() for s in elf.iter_segments() if isinstance(s, InterpSegment)]
        missing = [name for name in loaders if not _resolve(name, members)]
        names = {name.rpartition("/")[2] for name in members}
        for section in elf.iter_sections():
            if isinstance(section, DynamicSection):
                libraries = [
                    str(getattr(tag, "needed", "")) for tag in section.iter_tags("DT_NEEDED")
                ]
                missing += [name for name in libraries if name not in names]
    return missing


TRAILER = "TRAILER!!!"
DIRECTORY = stat.S_IFDIR | 0o755
PROGRAM = stat.S_IFREG | 0o755
# A member: its mode, and the contents of a file or where they are, or the target of a link.
Member = tuple[int, bytes | Path]


def archive(files: Mapping[str, bytes]) -> bytes:
    """Return an archive of programs by absolute name, and of their directories."""
    return b"".join(write_members(with_folders({n: (PROGRAM, d) for n, d in files.items()})))


def with_folders(members: Mapping[str, Member]) -> dict[str, Member]:
    """Return members, by name, and the directories that they lie in, in the order of names."""
    folders: dict[str, Member] = {}
    for name in members:
        parts = name.strip("/").split("/")[:-1]
        folders |= {"/".join(parts[: end + 1]): (DIRECTORY, b"") for end in range(len(parts))}
    given = {name.strip("/"): members[name] for name in sorted(members)}
    return {**dict(sorted(folders.items())), **given}


def write_members(members: Mapping[str, Member]) -> Iterator[bytes]:
    """Yield the bytes of an archive, in which directories have to precede what is in them."""
    size = 0
    for number, (name, (mode, data)) in enumerate(members.items(), 1):
        contents = data.read_bytes() if isinstance(data, Path) else data
        yield (member := record(number, name, mode, contents))
        size += len(member)
    yield padded(record(0, TRAILER, 0, b""), 512, size)


def record(
    number: int, name: str, mode: int, data: bytes, device: tuple[int, int] = (0, 0)
) -> bytes:
    """Return one member; owner, group and time are 0, so that the bytes are reproducible."""
    links = 2 if stat.S_ISDIR(mode) else 1
    fields = (
        number, mode, 0, 0, links, 0, len(data), 0, 0, *device, len(name.encode()) + 1, 0,
    )  # fmt: skip
    header = b"070701" + b"".join(b"%08X" % field for field in fields)
    return padded(header + name.encode() + b"\0", 4) + padded(data, 4)


def padded(data: bytes, unit: int, before: int = 0) -> bytes:
    """Return `data`, which follows `before` bytes, with zeroes up to a multiple of `unit`."""
    return data + b"\0" * (-(before + len(data)) % unit)
