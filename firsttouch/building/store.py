# SPDX-License-Identifier: GPL-2.0
"""The store: built things under the digest of their recipe, outcomes of guests under their key.

An entry is a directory that appears by an atomic rename. Its manifest has the recipe and the
digest of each file. Each use checks an entry against its manifest; a damaged one is made again.

flock(2) decides who makes an entry, runs a guest or prunes; a process that dies releases its
locks. On NFS, Linux maps flock to byte-range locks, so that hosts may share a store.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import lzma
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from firsttouch.errors import HostError, UserError
from firsttouch.files import digest, digest_file, write_atomically
from firsttouch.tables import Fields, Json, json_object

MANIFEST = "manifest.json"
OUTCOMES, CCACHE = "outcomes", "ccache"
# The title of an entry that a killed process left.
UNFINISHED = "unfinished"
# How a file that xz packed begins, and from how many bytes on an outcome is packed.
_PACKED, _LONG = b"\xfd7zXZ\0", 1 << 16
# Suffix of what is being removed. Seconds after which a half-written file is a dead process's.
_PRUNED, _LITTER = ".pruned", 24 * 3600
# Where half-written files and lock files can be.
_DEPTHS = ("", "*/", f"{OUTCOMES}/*/")
# The descriptors of what this process uses, by device and inode.
_used: dict[tuple[int, int], int] = {}

# Makes an entry, given a folder to work in and an empty folder for the entry's files.
Maker = Callable[[Path, Path], None]


def store_root() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    if not Path(base).is_absolute():
        raise UserError(f"XDG_CACHE_HOME is {base!r}: set it to an absolute path.")
    return Path(base) / "firsttouch"


def check_path(store: Path) -> None:
    """Raise HostError if a kernel cannot be built below `store`."""
    if re.search(r"[\s:]", str(store)):
        raise HostError(
            f"kernels cannot be built below {store_root()}, because their makefiles do not allow "
            "a space or a colon in a path: set XDG_CACHE_HOME to a path without them."
        )


# -- locks


@contextmanager
def locked(path: Path, wait: Callable[[], object] | None = None) -> Iterator[bool]:
    """Hold the lock file `path` while the context lasts; yield whether it is held.

    If another process holds it, call `wait` and wait until it is free, or yield False.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = _take(path, fcntl.LOCK_EX | fcntl.LOCK_NB)
    if descriptor is None and wait:
        wait()
        descriptor = _take(path, fcntl.LOCK_EX)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            path.unlink(missing_ok=True)
            os.close(descriptor)


def _take(path: Path, operation: int) -> int | None:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        held = False
        try:
            if not _flock(descriptor, operation, path):
                return None
            # Its holder may have removed the file: then this lock has no name.
            with contextlib.suppress(FileNotFoundError):
                held = os.path.samestat(os.fstat(descriptor), path.stat())
            if held:
                return descriptor
        finally:
            if not held:
                os.close(descriptor)


def _flock(descriptor: int, operation: int, path: Path) -> bool:
    try:
        fcntl.flock(descriptor, operation)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP):
            raise
        raise HostError(
            f"{path.parent} is on a file system without locks (flock), which firsttouch needs "
            "there: name a directory on another one, by --out, or by XDG_CACHE_HOME for the store."
        ) from None
    return True


def note_use(file: Path) -> None:
    """Share the lock of `file`, if it exists, until this process ends: no prune removes it."""
    with contextlib.suppress(OSError):
        descriptor = os.open(file, os.O_RDONLY)
        status = os.fstat(descriptor)
        if _used.setdefault((status.st_dev, status.st_ino), descriptor) == descriptor:
            _flock(descriptor, fcntl.LOCK_SH, file)
        else:
            os.close(descriptor)
        os.utime(file)


@contextmanager
def unless_used(file: Path) -> Iterator[bool]:
    """Keep processes from using `file` while the context lasts; yield whether none does."""
    try:
        descriptor = os.open(file, os.O_RDONLY)
    except FileNotFoundError:
        yield True
        return
    try:
        yield _flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, file)
    finally:
        os.close(descriptor)


# -- entries


@dataclass(frozen=True)
class Manifest:
    title: str
    recipe: Mapping[str, Json]
    files: Mapping[str, str]


def read_manifest(directory: Path) -> Manifest | None:
    """Return the manifest of the entry in `directory`; None if it is missing or unreadable."""
    try:
        table = Fields(directory, json_object((directory / MANIFEST).read_text()) or {})
        return Manifest(
            table.take("title", str),
            table.table("recipe").rest(),
            table.table("files").values_of(str),
        )
    except (OSError, UserError):
        return None


@dataclass(frozen=True)
class Entry:
    """One entry: `kind` is its folder in the store, `title` its name in messages.

    `recipe` is everything that decides its bytes. Files of `deep` entries are checked by their
    digests; those of others, which have very many, by sizes and times.
    """

    kind: str
    recipe: Mapping[str, Json]
    title: str
    deep: bool = True

    @property
    def path(self) -> Path:
        """The entry's directory, which exists only if the entry is complete."""
        return store_root() / self.kind / digest(self.recipe)[:32]

    def use(self) -> Path | None:
        """Note a use of the entry and return its directory; None if it is missing or damaged."""
        # Computed once: a kernel tree has very many files.
        path = self.path
        note_use(path / MANIFEST)
        manifest = read_manifest(path)
        if manifest is None or digest(manifest.recipe) != digest(self.recipe):
            return None
        try:
            intact = all(self._state(path / name) == was for name, was in manifest.files.items())
        except OSError:
            return None
        return path if intact else None

    def obtain(self, make: Maker, say: Callable[[str], None]) -> Path:
        """Return the entry's directory; call `make` if the entry is missing or damaged."""
        if stored := self.use():
            return stored
        what = f"{self.title} ({self.kind}/{self.path.name})"
        waiting = f"Another run is making {what}; waiting for it."
        with locked(self.path.with_suffix(".lock"), lambda: say(waiting)):
            if stored := self.use():
                return stored
            if self.path.exists():
                say(f"The stored {what} is damaged; making it again.")
            workplace = self.path.with_suffix(".making")
            # A killed maker's may be there.
            for gone in (self.path, workplace):
                shutil.rmtree(gone, ignore_errors=True)
            product = workplace / "kept"
            product.mkdir(parents=True)
            make(workplace, product)
            files: dict[str, Json] = {
                str(file.relative_to(product)): self._state(file)
                for file in sorted(product.rglob("*"))
                if file.is_symlink() or file.is_file()
            }
            manifest = {"title": self.title, "recipe": self.recipe, "files": files}
            write_atomically(product / MANIFEST, json.dumps(manifest, indent=1))
            # Before a prune can see the entry.
            note_use(product / MANIFEST)
            product.rename(self.path)
            shutil.rmtree(workplace, ignore_errors=True)
        return self.path

    def _state(self, file: Path) -> str:
        # A link may lead to a file of the host's: its target is what counts.
        if self.deep:
            return f"-> {file.readlink()}" if file.is_symlink() else digest_file(file)
        status = file.lstat()
        return f"{status.st_size} {status.st_mtime_ns}"


# -- outcomes of guests: a JSON file each, packed by xz if it has recordings


def outcome_place(key: str) -> Path:
    # 256 directories, so that none has more than a few thousand entries.
    return store_root() / OUTCOMES / key[:2] / f"{key}.json"


def stored_outcome(key: str) -> Fields | None:
    """Return the outcome that the store keeps under `key`; None if it is missing or damaged."""
    place = outcome_place(key)
    try:
        data = place.read_bytes()
        text = lzma.decompress(data) if data.startswith(_PACKED) else data
        document = json_object(text.decode()) or {}
        # A run keeps what it has read: only the time of the use counts.
        os.utime(place)
    except (OSError, UnicodeDecodeError, lzma.LZMAError):
        return None
    intact = document.get("digest") == digest(document.get("outcome"))
    return Fields(place, document).table("outcome") if intact else None


def keep_outcome(key: str, outcome: Mapping[str, Json]) -> None:
    """Keep `outcome` under `key`, with its digest; it is on the disk when this returns."""
    text = json.dumps({"digest": digest(outcome), "outcome": outcome}).encode() + b"\n"
    # What is packed the most is digits: a higher preset takes longer and gains little.
    data = lzma.compress(text, preset=1) if len(text) > _LONG else text
    write_atomically(outcome_place(key), data)


# -- what the store holds


@dataclass(frozen=True)
class Item:
    """One thing in the store: `size` in bytes, last `used` in seconds since the epoch.

    `path` is an entry's directory or a file; `lock` is what its users lock.
    """

    kind: str
    title: str
    path: Path
    size: int
    used: float
    lock: Path

    @property
    def in_use(self) -> bool:
        with self._unless_used() as free:
            return not free

    def remove(self) -> bool:
        """Remove it unless a process uses it; return whether it is gone."""
        with self._unless_used() as free:
            if free:
                # Renamed first, so that a killed prune leaves no half of an entry.
                gone = self.path.with_name(f".{self.path.name}{_PRUNED}")
                with contextlib.suppress(FileNotFoundError):
                    _delete(self.path.rename(gone))
        return free

    def _unless_used(self) -> contextlib.AbstractContextManager[bool]:
        return locked(self.lock) if self.lock.suffix == ".lock" else unless_used(self.lock)


def _delete(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def items() -> list[Item]:
    """Return what the store holds, most recently used first, and what is unfinished last."""
    root, found = store_root(), []
    objects = root / CCACHE
    if objects.is_dir():
        found.append(_item(objects, "objects of kernels that ccache keeps", objects / "used"))
    for path in root.glob("[!.]*/[!.]*"):
        if path.suffix == ".json" and path.is_file():
            found.append(_item(path, path.stem, path))
        elif path.is_dir() and path.parent.name not in (OUTCOMES, CCACHE, "apt"):
            manifest = read_manifest(path)
            lock = path / MANIFEST if manifest else path.with_suffix(".lock")
            found.append(_item(path, manifest.title if manifest else UNFINISHED, lock))
    found += [_item(path, path.stem, path) for path in root.glob(f"{OUTCOMES}/*/[!.]*.json")]
    return sorted(found, key=lambda item: (item.title == UNFINISHED, -item.used))


def _item(path: Path, title: str, lock: Path) -> Item:
    if path.is_dir():
        # Blocks, because a sparse file takes fewer bytes than it has. A file that another
        # process removes meanwhile makes du fail; the rest is counted.
        done = subprocess.run(["du", "-sk", path], capture_output=True, text=True, check=False)
        size = int(done.stdout.split()[0]) << 10 if done.stdout else 0
    else:
        size = path.stat().st_size if path.exists() else 0
    kind = path.relative_to(store_root()).parts[0]
    return Item(kind, title, path, size, _time(path if title == UNFINISHED else lock), lock)


def prune(keep: int) -> list[Item]:
    """Remove the least recently used until at most `keep` bytes are left; return what went.

    What a living process uses stays, even if the store is then larger. What killed processes
    left unfinished goes in any case.
    """
    root, removed = store_root(), []
    for litter in chain(*(root.glob(f"{depth}.*") for depth in _DEPTHS)):
        with contextlib.suppress(OSError):
            if litter.suffix == _PRUNED or time.time() - _time(litter) > _LITTER:
                _delete(litter)
    for lock in chain(*(root.glob(f"{depth}*.lock") for depth in _DEPTHS)):
        # To release it removes it.
        with locked(lock):
            pass
    left = items()
    size = sum(item.size for item in left)
    for item in reversed(left):
        if (size > keep or item.title == UNFINISHED) and item.remove():
            size -= item.size
            removed.append(item)
    return removed


def _time(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
