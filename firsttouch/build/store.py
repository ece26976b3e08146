# SPDX-License-Identifier: GPL-2.0
"""The user's cache: entries named by the hash of what they are made from.

An entry is a directory that appears in one rename, with a manifest of the
SHA-256 of each file in it. It is checked against the manifest each time it is
used: one that was damaged is made again. Makers of the same entry wait for
each other, across processes.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from firsttouch.errors import MachineError

_MANIFEST = "manifest.json"
# Seconds after which a half-made entry that is nobody's is given up: a week.
_ABANDONED = 7 * 24 * 3600


def cache_root() -> Path:
    """Return the cache's directory, as the XDG base directory specification places it."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "firsttouch"


def digest_file(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest(value: object) -> str:
    """Return the SHA-256 of a value's canonical JSON, in hexadecimal."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def digest_files(root: Path, files: list[Path]) -> str:
    """Return one digest of the names below `root` and the contents of `files`."""
    return digest({str(path.relative_to(root)): digest_file(path) for path in sorted(files)})


def write_atomically(path: Path, data: str | bytes) -> None:
    """Write a file so that it is whole or not there, whatever happens in between."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with partial.open("wb") as file:
            file.write(data.encode() if isinstance(data, str) else data)
            file.flush()
            os.fsync(file.fileno())
        partial.rename(path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def locked(path: Path, wait: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold the lock file `path`; call `wait` once if another process holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            wait()
            fcntl.flock(file, fcntl.LOCK_EX)
        # The kernel drops the lock with the descriptor, so a killed holder
        # leaves nothing behind.
        yield


@dataclass(frozen=True)
class Entry:
    """One entry: `kind` names the shelf, `key` is the digest of what it is made from.

    `deep` entries are checked by content; the others, of very many files, by
    the files' sizes and modification times.
    """

    kind: str
    key: str
    deep: bool = True

    @property
    def path(self) -> Path:
        """The entry's directory; it exists once the entry does."""
        return cache_root() / self.kind / self.key[:32]

    @property
    def workplace(self) -> Path:
        """The directory in which the entry is made; what a killed maker left is still there."""
        return self.path.with_name(f"{self.path.name}.making")

    def whole(self) -> bool:
        """Tell whether the entry is there and each file is what it was when it was made."""
        try:
            manifest = json.loads((self.path / _MANIFEST).read_text())
            return all(self._state(self.path / name) == was for name, was in manifest.items())
        except (OSError, ValueError, AttributeError):
            return False

    def _state(self, file: Path) -> str:
        if self.deep:
            return digest_file(file)
        status = file.lstat()
        return f"{status.st_size} {status.st_mtime_ns}"

    def obtain(
        self,
        make: Callable[[Path, Path], None],
        say: Callable[[str], None],
    ) -> Path:
        """Return the entry's directory, making it first if it is missing or damaged.

        `make` is called with the workplace, in which it may find what a
        killed maker left, and with an empty directory for what is to be kept.
        """
        try:
            return self._obtain(make, say)
        except OSError as error:
            raise _no_room(error, self.path) from None

    def _obtain(self, make: Callable[[Path, Path], None], say: Callable[[str], None]) -> Path:
        if self.whole():
            return self.path
        lock = self.path.with_name(f"{self.path.name}.lock")
        what = f"{self.kind}/{self.path.name}"
        with locked(lock, lambda: say(f"Another run is making {what}; waiting for it.")):
            if self.whole():
                return self.path
            if self.path.exists():
                say(f"The cached {what} is damaged; making it again.")
                shutil.rmtree(self.path)
            self.workplace.mkdir(parents=True, exist_ok=True)
            kept = self.workplace / "kept"
            shutil.rmtree(kept, ignore_errors=True)
            kept.mkdir()
            make(self.workplace, kept)
            manifest = {
                str(file.relative_to(kept)): self._state(file)
                for file in sorted(kept.rglob("*"))
                if file.is_file()
            }
            write_atomically(kept / _MANIFEST, json.dumps(manifest, indent=1))
            kept.rename(self.path)
            shutil.rmtree(self.workplace)
        self._sweep()
        return self.path

    def _sweep(self) -> None:
        """Remove what killed makers of this kind left long ago and nobody has gone on with."""
        for workplace in self.path.parent.glob("*.making"):
            lock = workplace.with_suffix(".lock")
            with contextlib.suppress(OSError), lock.open("a") as file:
                if time.time() - workplace.stat().st_mtime > _ABANDONED:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(workplace)


def _no_room(error: OSError, path: Path) -> MachineError:
    reason = error.strerror or str(error)
    return MachineError(
        f"cannot write below {path.parent} ({reason}): free some space there, "
        "or set XDG_CACHE_HOME to a directory that can be written."
    )
