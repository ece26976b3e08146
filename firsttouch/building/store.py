# SPDX-License-Identifier: GPL-2.0
"""The store: built things under the digest of their recipe, outcomes of guests under their key.

An entry is a directory that appears by an atomic rename. Its manifest has the recipe and the
digest of each file. Each use checks an entry against its manifest; a damaged one is made again.

flock(2), also on NFS, decides who makes an entry, runs a guest or prunes; a process that dies
releases its locks. All that use the store share a lock, which a prune needs alone.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import json
import lzma
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from firsttouch.errors import HostError, UserError
from firsttouch.files import digest, digest_file, write_atomically
from firsttouch.tables import Fields, Json, json_object, read, read_json

MANIFEST = "manifest.json"
OUTCOMES, CCACHE = "outcomes", "ccache"
# The title of an entry that a killed process left.
UNFINISHED = "unfinished"
# How a file that xz packed begins, and from how many bytes on an outcome is packed.
_PACKED, _LONG = b"\xfd7zXZ\0", 1 << 16

# Makes an entry, given a folder to work in and an empty folder for the entry's files.
Maker = Callable[[Path, Path], None]


def store_root() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    if not Path(base).is_absolute():
        raise UserError(f"XDG_CACHE_HOME is {base!r}: set it to an absolute path.")
    return Path(base) / "firsttouch"


def check_place() -> None:
    """Raise HostError if kernels cannot be built in the store."""
    if any(letter.isspace() or letter == ":" for letter in str(store_root())):
        raise HostError(
            f"kernels cannot be built below {store_root()}, because their makefiles do not "
            "allow a space or a colon in a path: set XDG_CACHE_HOME to a path without them."
        )


@contextmanager
def locked(path: Path, wait: Callable[[], object] | None = None) -> Iterator[bool]:
    """Hold the lock file `path`, which stays, while the context lasts; yield whether it is held.

    If another process holds it, call `wait` and wait until it is free, or yield False.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        try:
            _flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB, path)
        except BlockingIOError:
            if wait is None:
                yield False
                return
            wait()
            _flock(file.fileno(), fcntl.LOCK_EX, path)
        yield True


def _flock(descriptor: int, operation: int, path: Path) -> None:
    try:
        fcntl.flock(descriptor, operation)
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP):
            raise
        raise HostError(
            f"{path.parent} is on a file system without locks (flock), which firsttouch needs "
            "there: name a directory on another one, by --out, or by XDG_CACHE_HOME for the store."
        ) from None


@functools.cache
def _share(root: Path) -> int:
    """Keep others from pruning the store until this process ends; return the lock."""
    root.mkdir(parents=True, exist_ok=True)
    lock = os.open(root / ".lock", os.O_RDWR | os.O_CREAT, 0o666)
    _flock(lock, fcntl.LOCK_SH, root / ".lock")
    return lock


@dataclass(frozen=True)
class Manifest:
    title: str
    files: Mapping[str, str]


def read_manifest(directory: Path) -> Manifest | None:
    """Return the manifest of the entry in `directory`; None if it is missing or damaged."""
    try:
        return read(read_json(directory / MANIFEST), Manifest, strict=False)
    except UserError:
        return None


@dataclass(frozen=True)
class Entry:
    """One entry: `kind` is its folder in the store, `title` its name, `recipe` decides its bytes.

    `file` is what its users want of it, by default the whole directory. Files of `deep` entries
    are checked by their digests; those of others, which have very many, by sizes and times.
    """

    kind: str
    recipe: Mapping[str, Json]
    title: str
    file: str = ""
    deep: bool = True

    @property
    def path(self) -> Path:
        """The entry's directory, which exists only if the entry is complete."""
        return store_root() / self.kind / digest(self.recipe)[:32]

    def use(self) -> Path | None:
        """Note a use of the entry and return its file; None if the entry is missing or damaged."""
        _share(store_root())
        path = self.path
        manifest = read_manifest(path)
        if manifest is None:
            return None
        try:
            os.utime(path / MANIFEST)
            intact = all(self._state(path / name) == was for name, was in manifest.files.items())
        except OSError:
            return None
        return path / self.file if intact else None

    def obtain(
        self,
        make: Maker,
        say: Callable[[str], object] = lambda _: None,
        follow: Callable[[Path], object] = lambda _: None,
    ) -> Path:
        """Return the entry's file; if missing or damaged, `make` it, or `follow` who does so."""
        if stored := self.use():
            return stored
        what = f"{self.title} ({self.kind}/{self.path.name})"
        workplace = self.path.with_suffix(".making")
        waiting = f"Another run is making {what}; waiting for it."
        with locked(self.path.with_suffix(".lock"), lambda: (say(waiting), follow(workplace))):
            if stored := self.use():
                return stored
            if self.path.exists():
                say(f"The stored {what} is damaged; making it again.")
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
            product.rename(self.path)
            shutil.rmtree(workplace, ignore_errors=True)
        return self.path / self.file

    def keep(self, data: bytes) -> Path:
        """Return the entry's file, which has the bytes `data`."""
        return self.obtain(lambda _, product: write_atomically(product / self.file, data))

    def _state(self, file: Path) -> str:
        # A link may lead to a file of the host's: its target is what counts.
        if self.deep:
            return f"-> {file.readlink()}" if file.is_symlink() else digest_file(file)
        status = file.lstat()
        return f"{status.st_size} {status.st_mtime_ns}"


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


@dataclass(frozen=True)
class Item:
    """An entry's directory or a file: `size` in bytes, last `used` in seconds since the epoch."""

    kind: str
    title: str
    path: Path
    size: int
    used: float


def items() -> list[Item]:
    """Return what the store holds, most recently used first, and what is unfinished last."""
    root = store_root()
    found = [_item(path, path.stem, path) for path in root.glob(f"{OUTCOMES}/*/[!.]*.json")]
    for path in root.glob("[!.]*/[!.]*/"):
        if path.parent.name not in (OUTCOMES, CCACHE, "apt"):
            manifest = read_manifest(path)
            title, used = (manifest.title, path / MANIFEST) if manifest else (UNFINISHED, path)
            found.append(_item(path, title, used))
    objects = root / CCACHE
    if objects.is_dir():
        found.append(_item(objects, "objects of kernels that ccache keeps", objects / "used"))
    return sorted(found, key=lambda item: (item.title == UNFINISHED, -item.used))


def _item(path: Path, title: str, used: Path) -> Item:
    # Another process may remove it meanwhile.
    size, when = 0, 0.0
    with contextlib.suppress(OSError):
        when = used.stat().st_mtime
        size = path.stat().st_size
    if path.is_dir():
        # Blocks, because a sparse file takes fewer bytes than it has.
        done = subprocess.run(["du", "-sk", path], capture_output=True, text=True, check=False)
        size = int(done.stdout.split()[0]) << 10 if done.stdout else 0
    return Item(path.relative_to(store_root()).parts[0], title, path, size, when)


def prune(keep: int) -> list[Item]:
    """Remove the least recently used until at most `keep` bytes are left; return what went.

    So does what is unfinished. Raises UserError while another process uses the store.
    """
    root = store_root()
    lock = _share(root)
    try:
        _flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB, root / ".lock")
        for folder in (*root.glob("*/"), *root.glob(f"{OUTCOMES}/*/")):
            for litter in (*folder.glob(".*"), *folder.glob("*.lock")):
                _delete(litter)
        removed, left = [], items()
        size = sum(item.size for item in left)
        for item in reversed(left):
            if size > keep or item.title == UNFINISHED:
                # Renamed first, so that a killed prune leaves no half of an entry.
                _delete(item.path.rename(item.path.with_name(f".{item.path.name}")))
                size -= item.size
                removed.append(item)
        return removed
    except BlockingIOError:
        raise UserError(
            f"another run uses {root}: wait until it has ended, or stop it, then prune."
        ) from None
    finally:
        _flock(lock, fcntl.LOCK_SH, root / ".lock")


def _delete(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()
