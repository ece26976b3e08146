# SPDX-License-Identifier: GPL-2.0
"""Files that are whole or not there, and the digests they are known by."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import uuid
from collections.abc import Iterable
from pathlib import Path

from firsttouch.errors import HostError


def digest_bytes(data: bytes) -> str:
    """Return the SHA-256 of `data`, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def digest_file(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest(value: object) -> str:
    """Return the SHA-256 of a value's canonical JSON, in hexadecimal."""
    return digest_bytes(json.dumps(value, sort_keys=True, separators=(",", ":")).encode())


def digest_files(root: Path, files: Iterable[Path]) -> str:
    """Return one digest of the names below `root` and the contents of `files`."""
    return digest({str(path.relative_to(root)): digest_file(path) for path in sorted(files)})


def write_atomically(path: Path, data: str | bytes) -> None:
    """Write a file so that it is whole or not there, whatever happens in between."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Unique among hosts too: the directory may be a share.
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with partial.open("wb") as file:
            file.write(data.encode() if isinstance(data, str) else data)
            file.flush()
            os.fsync(file.fileno())
        partial.rename(path)
    except OSError as error:
        # A write that fails does not say where.
        error.filename = error.filename or str(path)
        raise
    finally:
        partial.unlink(missing_ok=True)


def least_room(paths: Iterable[Path]) -> Path:
    """Return that path whose file system has the least room for new files.

    Where one is not there yet, its nearest parent counts.
    """

    def room(path: Path) -> int:
        place = path.absolute()
        while not place.exists():
            place = place.parent
        system = os.statvfs(place)
        # Some file systems have no fixed number of files.
        files_left = not system.f_files or system.f_favail
        return system.f_bavail * system.f_frsize if files_left else 0

    return min(paths, key=room)


def check_room(directory: Path) -> None:
    """Raise OSError if not a byte can be written to the file system of `directory`."""
    system = os.statvfs(directory)
    if system.f_blocks and not system.f_bavail:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(directory))


def check_writable(directory: Path) -> None:
    """Make `directory` if need be; HostError if no file can be written there."""
    probe = directory / f".{uuid.uuid4().hex}"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise HostError(
            f"cannot write to {directory} ({error.strerror}): name another directory by --out."
        ) from None
