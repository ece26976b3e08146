# SPDX-License-Identifier: GPL-2.0
"""Archives for initial RAM disks: cpio's "newc" format, with reproducible bytes.

Format: Documentation/driver-api/early-userspace/buffer-format.rst of the kernel.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

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
