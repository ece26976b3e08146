# SPDX-License-Identifier: GPL-2.0
"""The store: built things, each under the digest of its recipe.

An entry is a directory that appears by an atomic rename. Its manifest has the
recipe and the SHA-256 of each file, so that it records which recipe gave
which bytes. Each use checks an entry against its manifest, and a damaged
entry is made again. Processes that need the same entry wait until one of them
has made it, and `store prune` removes none that a process uses.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from firsttouch.building.locks import locked, locked_if_free, use
from firsttouch.errors import HostError, UserError
from firsttouch.files import digest, digest_file, write_atomically
from firsttouch.tables import Json, Table, json_object

MANIFEST = "manifest.json"
# Seconds after which an unfinished entry that nobody makes is removed: a week.
_ABANDONED = 7 * 24 * 3600


def store_root() -> Path:
    """Return the store's directory, as the XDG base directory specification places it.

    Raises UserError if XDG_CACHE_HOME is a relative path.
    """
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


@dataclass(frozen=True)
class Manifest:
    """The record of an entry: its title, its recipe, and the state of each file."""

    title: str
    recipe: Mapping[str, Json]
    files: Mapping[str, str]


def read_manifest(directory: Path) -> Manifest | None:
    """Return the manifest of the entry in `directory`; None if it is missing or unreadable."""
    try:
        document = json_object((directory / MANIFEST).read_text())
        table = Table(directory / MANIFEST, document or {})
        return Manifest(
            table.take("title", str),
            table.table("recipe").rest(),
            table.table("files").values_of(str),
        )
    except (OSError, UserError):
        return None


# Makes an entry. Its arguments are a directory to work in, which still has what
# a killed maker left there, and an empty directory for the entry's files.
Maker = Callable[[Path, Path], None]


@dataclass(frozen=True)
class Entry:
    """One entry: `kind` is its folder in the store, `title` its name in messages.

    `recipe` has everything that it is made from. `deep` entries are checked by
    content; the others, which have very many files, by the files' sizes and
    modification times.
    """

    kind: str
    recipe: Mapping[str, Json]
    title: str
    deep: bool = True

    @property
    def path(self) -> Path:
        """The entry's directory; it exists only when the entry is complete."""
        return store_root() / self.kind / digest(self.recipe)[:32]

    def contents(self) -> Mapping[str, str] | None:
        """Return the digest of each file; None if the entry is missing or damaged.

        An entry that is not `deep` has sizes and times instead of digests.
        """
        # Computed once: a kernel tree has very many files.
        path = self.path
        manifest = read_manifest(path)
        if manifest is None or digest(manifest.recipe) != digest(self.recipe):
            return None
        try:
            for name, was in manifest.files.items():
                if self._state(path / name) != was:
                    return None
        except OSError:
            return None
        return manifest.files

    def use(self) -> Path | None:
        """Note a use of the entry and return its directory; None if it is missing or damaged."""
        note_use(self.path / MANIFEST)
        return None if self.contents() is None else self.path

    def obtain(self, make: Maker, say: Callable[[str], None]) -> Path:
        """Return the entry's directory; let `make` fill it if the entry is missing or damaged.

        Raises HostError if the store cannot be written.
        """
        try:
            return self.use() or self._make(make, say)
        except OSError as error:
            if (reason := _store_problem(error)) is None:
                raise
            raise HostError(reason) from None

    def _make(self, make: Maker, say: Callable[[str], None]) -> Path:
        what = f"{self.kind}/{self.path.name}"
        waiting = f"Another run is making {self.title} ({what}); waiting for it."
        with locked(self.path.with_suffix(".lock"), lambda: say(waiting)):
            if stored := self.use():
                return stored
            if self.path.exists():
                say(f"The stored {self.title} ({what}) is damaged; making it again.")
                shutil.rmtree(self.path, ignore_errors=True)
            workplace = self.path.with_suffix(".making")
            workplace.mkdir(parents=True, exist_ok=True)
            product = workplace / "kept"
            shutil.rmtree(product, ignore_errors=True)
            product.mkdir()
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
        sweep_workplaces(self.path.parent)
        return self.path

    def _state(self, file: Path) -> str:
        # A link may point out of the store, to a file of the host's: its target is what counts.
        if self.deep:
            return f"-> {file.readlink()}" if file.is_symlink() else digest_file(file)
        status = file.lstat()
        return f"{status.st_size} {status.st_mtime_ns}"


def sweep_workplaces(shelf: Path) -> None:
    """Remove unfinished entries of `shelf` that nobody has worked on for a week."""
    for workplace in shelf.glob("*.making"):
        with contextlib.suppress(OSError):
            if time.time() - workplace.stat().st_mtime > _ABANDONED:
                with locked_if_free(workplace.with_suffix(".lock")) as free:
                    if free:
                        shutil.rmtree(workplace)


def _store_problem(error: OSError) -> str | None:
    """Return a message if the store cannot be written; None for any other error."""
    root = store_root()
    # A failed copy names its destination as filename2. A failed write to an open
    # file names no file.
    name = error.filename2 or error.filename
    place = Path(os.fsdecode(name)) if name else root
    # A folder above the store may be what cannot be made.
    if not place.is_relative_to(root) and not root.is_relative_to(place):
        return None
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return (
            f"no space left below {root} ({error.strerror}): `firsttouch store list` shows what it "
            "holds, `firsttouch store prune --keep SIZE` leaves that much of it; or set "
            "XDG_CACHE_HOME to a directory with room."
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return (
            f"cannot write below {root} ({error.strerror}): "
            "set XDG_CACHE_HOME to a directory that you can write."
        )
    return None


def note_use(file: Path) -> None:
    """Note that this process uses `file`, or its entry, so that no prune removes it until it ends.

    `file` may be missing, and a prune may have removed it while this function
    waited for it: the caller must check afterwards that it exists.
    """
    use(file)
    with contextlib.suppress(OSError):
        os.utime(file)
