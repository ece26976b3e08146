# SPDX-License-Identifier: GPL-2.0
"""Atomic writes, digests of files, checks for space and permission to write, and the data's places.

Folders of the same names below ``$XDG_CONFIG_HOME/firsttouch`` have users' own machines,
experiments, arms and settings.
"""

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
    return hashlib.sha256(data).hexdigest()


def digest_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest(value: object) -> str:
    """Return the SHA-256 of a value's JSON with sorted keys, in hexadecimal."""
    return digest_bytes(json.dumps(value, sort_keys=True, separators=(",", ":")).encode())


def digest_files(root: Path, files: Iterable[Path]) -> str:
    """Return one digest of the names below `root` and the contents of `files`."""
    return digest({str(path.relative_to(root)): digest_file(path) for path in sorted(files)})


def write_atomically(path: Path, data: str | bytes) -> None:
    """Write a file by a rename: a reader, and a host that crashes, see all of it or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Unique across hosts too: the directory may be on a share.
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with partial.open("wb") as file:
            # Names of files may have bytes that are not UTF-8.
            file.write(data.encode(errors="backslashreplace") if isinstance(data, str) else data)
            file.flush()
            os.fsync(file.fileno())
        partial.rename(path)
    except OSError as error:
        # An error of write(2) names no file.
        error.filename = error.filename or str(path)
        raise
    finally:
        partial.unlink(missing_ok=True)


def check_room(directory: Path, least: int = 1) -> None:
    """Raise OSError if the file system of `directory` has no room for `least` bytes."""
    system = os.statvfs(directory)
    if system.f_blocks and system.f_bavail * system.f_frsize < least:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(directory))


def check_writable(directory: Path) -> None:
    """Make `directory` if it does not exist; HostError if no file can be written there."""
    probe = directory / ".writable"
    try:
        write_atomically(probe, "")
        probe.unlink(missing_ok=True)
    except OSError as error:
        raise HostError(
            f"cannot write to {directory} ({error.strerror}): name another directory by --out."
        ) from None


# An installed package has the folders in data/, a checkout has them at its top.
_DATA = Path(__file__).resolve().with_name("data")
REPOSITORY = _DATA if _DATA.is_dir() else _DATA.parent.parent
LINUX = REPOSITORY / "linux"
EXPERIMENTS = REPOSITORY / "experiments"
MACHINES = REPOSITORY / "machines"
ARMS = REPOSITORY / "arms"
ARCHITECTURES = REPOSITORY / "architectures"
SETTINGS = REPOSITORY / "settings"
# Those whose files options name.
FOLDERS = {"experiment": EXPERIMENTS, "machine": MACHINES, "arm": ARMS, "setting": SETTINGS}


def users_folder() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config", "firsttouch")
