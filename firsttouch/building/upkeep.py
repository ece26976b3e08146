# SPDX-License-Identifier: GPL-2.0
"""Lists what the store holds, and removes what no run uses to keep it small."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from firsttouch.building.compiler_cache import FOLDER as OBJECTS
from firsttouch.building.compiler_cache import USED
from firsttouch.building.locks import locked_if_free, unless_used
from firsttouch.building.outcomes import OUTCOMES
from firsttouch.building.store import MANIFEST, read_manifest, store_root

# Folders of the store that hold no entries.
_NOT_SHELVES = (OUTCOMES, OBJECTS, "apt")
# Where half-written files and lock files can be.
_DEEP = ("", "*/", f"{OUTCOMES}/*/")
# Seconds: far longer than a write takes.
_LITTER = 24 * 3600
# Suffix of a directory that is being removed.
_PRUNED = ".pruned"


@dataclass(frozen=True)
class Item:
    """One thing in the store: `size` in bytes, last `used` in seconds since the epoch.

    `path` is an entry's directory or a file. `lock` is what a process locks
    that uses or makes it.
    """

    kind: str
    title: str
    path: Path
    size: int
    used: float
    lock: Path

    @property
    def in_use(self) -> bool:
        """Whether a process uses or makes it now."""
        with unless_used(self.lock) as free:
            return not free


def items() -> list[Item]:
    """Return what the store holds, most recently used first."""
    return sorted([*_entries(), *_files(), *_objects()], key=lambda item: -item.used)


def prune(keep: int) -> list[Item]:
    """Remove the least recently used until the store has at most `keep` bytes; return it.

    What a living process uses stays, even if the store is then larger.
    """
    removed = []
    _sweep(store_root())
    left = items()
    size = sum(item.size for item in left)
    for item in reversed(left):
        if size <= keep:
            break
        unfinished = item.lock.suffix == ".lock"
        with locked_if_free(item.lock) if unfinished else unless_used(item.lock) as free:
            if free:
                _remove(item.path)
                size -= item.size
                removed.append(item)
    return removed


def _sweep(root: Path) -> None:
    """Remove what killed processes left: locks, half-written files, half-removed entries."""
    for litter in chain(*(root.glob(f"{deep}.*") for deep in _DEEP)):
        with contextlib.suppress(OSError):
            if litter.suffix == _PRUNED:
                shutil.rmtree(litter)
            elif litter.is_file() and time.time() - litter.stat().st_mtime > _LITTER:
                litter.unlink()
    for lock in chain(*(root.glob(f"{deep}*.lock") for deep in _DEEP)):
        # Releasing it removes its file.
        with locked_if_free(lock):
            pass


def _remove(path: Path) -> None:
    if path.is_file():
        path.unlink(missing_ok=True)
        return
    # Rename first, so that a killed prune leaves no half of an entry.
    gone = path.with_name(f".{path.name}{_PRUNED}")
    with contextlib.suppress(FileNotFoundError):
        path.rename(gone)
        shutil.rmtree(gone)


def _entries() -> Iterator[Item]:
    for path in chain(*(shelf.iterdir() for shelf in _shelves())):
        if not path.is_dir() or path.name.startswith("."):
            continue
        kind, size = path.parent.name, _size(path)
        if path.suffix == ".making":
            yield Item(kind, "unfinished", path, size, _time(path), path.with_suffix(".lock"))
            continue
        manifest = read_manifest(path)
        title = manifest.title if manifest else "made by another version of firsttouch"
        used = _time(path / MANIFEST) or _time(path)
        yield Item(kind, title, path, size, used, path / MANIFEST)


def _files() -> Iterator[Item]:
    """Yield the outcomes of guests, and documents that other rooms keep, such as surveys."""
    documents = chain(*(shelf.glob("[!.]*.json") for shelf in _shelves()))
    for path in chain((store_root() / OUTCOMES).glob("*/[!.]*.json"), documents):
        with contextlib.suppress(OSError):
            status = path.stat()
            kind = OUTCOMES if path.parent.parent.name == OUTCOMES else path.parent.name
            yield Item(kind, path.stem, path, status.st_size, status.st_mtime, path)


def _objects() -> Iterator[Item]:
    folder = store_root() / OBJECTS
    if folder.is_dir():
        used = _time(folder / USED)
        title = "objects of kernels that ccache keeps"
        yield Item(OBJECTS, title, folder, _size(folder), used, folder / USED)


def _shelves() -> Iterator[Path]:
    root = store_root()
    if root.is_dir():
        yield from (
            path for path in root.iterdir() if path.is_dir() and path.name not in _NOT_SHELVES
        )


def _time(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _size(path: Path) -> int:
    """Return the bytes that a folder takes on the disk: a sparse file takes fewer than it has."""
    # A file that another process removes meanwhile makes du fail; the rest is counted.
    done = subprocess.run(["du", "-sk", path], capture_output=True, text=True, check=False)
    return int(done.stdout.split()[0]) << 10 if done.stdout else 0
