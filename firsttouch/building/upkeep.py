# SPDX-License-Identifier: GPL-2.0
"""Lists what the store holds, and removes what no run uses to keep it small."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from firsttouch.building.claims import claimed, claimed_if_free, clock, is_claimed
from firsttouch.building.compiler_cache import FOLDER as OBJECTS
from firsttouch.building.compiler_cache import USED
from firsttouch.building.outcomes import CLAIMS, OUTCOMES
from firsttouch.building.store import MANIFEST, PLANS, PRUNING, RUNS, read_manifest, store_root

# Folders of the store that hold no entries.
_NOT_SHELVES = (RUNS, PLANS, OUTCOMES, CLAIMS, OBJECTS, "apt")
# Where half-written files and claims can be.
_DEEP = ("", "*/", f"{OUTCOMES}/*/", f"{CLAIMS}/*/")
# Seconds: far longer than the time between two touches of a claim, or a write.
_LITTER = 24 * 3600
# Suffix of a directory that is being removed.
_PRUNED = ".pruned"


@dataclass(frozen=True)
class Item:
    """One thing in the store: `size` in bytes, last `used` in seconds since the epoch.

    `path` is an entry's directory or an outcome's file. `in_use`: a living run
    has used it, or a process is making it.
    """

    kind: str
    title: str
    path: Path
    size: int
    used: float
    in_use: bool


def items() -> list[Item]:
    """Return what the store holds, most recently used first."""
    since = _oldest_run()
    listed = [*_entries(since), *_workplaces(), *_outcomes(since), *_objects(since)]
    return sorted(listed, key=lambda item: -item.used)


def prune(keep: int) -> list[Item]:
    """Remove the least recently used until the store has at most `keep` bytes; return it.

    What a living run uses stays, even if the store is then larger.
    """
    removed = []
    root = store_root()
    with claimed(root / PRUNING):
        _sweep(root)
        left = items()
        size = sum(item.size for item in left)
        for item in reversed(left):
            if size <= keep:
                break
            if not item.in_use:
                _remove(item.path)
                size -= item.size
                removed.append(item)
    return removed


def _sweep(root: Path) -> None:
    """Remove what killed processes left: claims, half-written files, half-removed entries."""
    for litter in chain(*(root.glob(f"{deep}.*") for deep in _DEEP)):
        with contextlib.suppress(OSError):
            if litter.suffix == _PRUNED:
                shutil.rmtree(litter)
            elif litter.is_file() and clock(root) - litter.stat().st_mtime > _LITTER:
                litter.unlink()
    for claim in [*root.glob("*/*.claim"), *root.glob(f"{CLAIMS}/*/[!.]*")]:
        # Taking an abandoned claim and releasing it removes its file.
        with claimed_if_free(claim):
            pass
    for plan in (root / PLANS).glob("[!.]*"):
        used = max(map(_time, [plan, *plan.rglob("*")]))
        if clock(root) - used > _LITTER:
            _remove(plan)


def _remove(path: Path) -> None:
    if path.is_file():
        path.unlink(missing_ok=True)
        return
    # Rename first, so that a killed prune leaves no half of an entry.
    gone = path.with_name(f".{path.name}{_PRUNED}")
    with contextlib.suppress(FileNotFoundError):
        path.rename(gone)
        shutil.rmtree(gone)


def _oldest_run() -> float:
    """Return when the oldest living run began; infinity if there is none."""
    began = float("inf")
    for run in (store_root() / RUNS).glob("[!.]*"):
        with contextlib.suppress(OSError):
            if is_claimed(run):
                began = min(began, float(run.name.partition("-")[0]))
            else:
                run.unlink()
    return began


def _entries(since: float) -> Iterator[Item]:
    for shelf in _shelves():
        for path in shelf.iterdir():
            if not path.is_dir() or path.suffix == ".making" or path.name.startswith("."):
                continue
            manifest = read_manifest(path)
            title = manifest.title if manifest else "made by another version of firsttouch"
            used = _time(path / MANIFEST) or _time(path)
            making = is_claimed(path.with_suffix(".claim"))
            yield Item(shelf.name, title, path, _size(path), used, making or used >= since)


def _workplaces() -> Iterator[Item]:
    for shelf in _shelves():
        for path in shelf.glob("*.making"):
            making = is_claimed(path.with_suffix(".claim"))
            yield Item(shelf.name, "unfinished", path, _size(path), _time(path), making)


def _outcomes(since: float) -> Iterator[Item]:
    for path in (store_root() / OUTCOMES).glob("*/*.json"):
        with contextlib.suppress(OSError):
            status = path.stat()
            used = status.st_mtime
            yield Item(OUTCOMES, path.stem, path, status.st_size, used, used >= since)


def _objects(since: float) -> Iterator[Item]:
    folder = store_root() / OBJECTS
    if folder.is_dir():
        used = _time(folder / USED)
        title = "objects of kernels that ccache keeps"
        yield Item(OBJECTS, title, folder, _size(folder), used, used >= since)


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
