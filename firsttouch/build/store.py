# SPDX-License-Identifier: GPL-2.0
"""The store: what was built, under the digest of the recipe that it was built by.

An entry is a directory that appears in one rename. Its manifest holds the
recipe and the SHA-256 of each file, so that the store knows which recipe gave
which bytes. An entry is checked against its manifest each time it is used,
and one that was damaged is made again. Makers of the same entry wait for each
other, across processes and hosts.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import json
import os
import shutil
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from firsttouch.build.claims import claimed, claimed_if_free, clock, is_claimed
from firsttouch.errors import HostError, UserError
from firsttouch.files import digest, digest_file, write_atomically
from firsttouch.tables import Json, Table, json_object

MANIFEST = "manifest.json"
# Where each process that uses the store says so, for `firsttouch store prune`.
RUNS = "runs"
PRUNING = "pruning"
# Seconds after which a half-made entry that is nobody's is given up: a week.
_ABANDONED = 7 * 24 * 3600
_POLL = 0.1


def store_root() -> Path:
    """Return the store's directory, as the XDG base directory specification places it.

    Raises UserError if the environment names a relative one.
    """
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    if not Path(base).is_absolute():
        raise UserError(f"XDG_CACHE_HOME is {base!r}: set it to an absolute path.")
    return Path(base) / "firsttouch"


@dataclass(frozen=True)
class Manifest:
    """What an entry says of itself: what it is of, its recipe, and the state of its files."""

    title: str
    recipe: Mapping[str, Json]
    files: Mapping[str, str]


def read_manifest(directory: Path) -> Manifest | None:
    """Return the manifest of the entry in `directory`; None if it has none that can be read."""
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


# Makes an entry: gets a workplace, where what a killed maker left still is,
# and an empty directory for what is to be kept.
Maker = Callable[[Path, Path], None]


@dataclass(frozen=True)
class Entry:
    """One entry: `kind` names the shelf, `recipe` all that it is made from, `title` what it is of.

    `deep` entries are checked by content; the others, of very many files, by
    the files' sizes and modification times.
    """

    kind: str
    recipe: Mapping[str, Json]
    title: str
    deep: bool = True

    @property
    def path(self) -> Path:
        """The entry's directory; it exists once the entry does."""
        return store_root() / self.kind / digest(self.recipe)[:32]

    def contents(self) -> Mapping[str, str] | None:
        """Return the digest of each file; None if the entry is not there, or was damaged.

        Those of an entry that is not `deep` are sizes and times.
        """
        manifest = read_manifest(self.path)
        if manifest is None or digest(manifest.recipe) != digest(self.recipe):
            return None
        try:
            for name, was in manifest.files.items():
                if self._state(self.path / name) != was:
                    return None
        except OSError:
            return None
        return manifest.files

    def use(self) -> Path | None:
        """Return the entry's directory and note that it is used; None as `contents`."""
        note_use(self.path / MANIFEST)
        return None if self.contents() is None else self.path

    def obtain(self, make: Maker, say: Callable[[str], None]) -> Path:
        """Return the entry's directory; have `make` fill it if it is not there.

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
        with claimed(self.path.with_suffix(".claim"), lambda: say(waiting)):
            if found := self.use():
                return found
            if self.path.exists():
                say(f"The stored {self.title} ({what}) is damaged; making it again.")
                shutil.rmtree(self.path)
            workplace = self.path.with_suffix(".making")
            workplace.mkdir(parents=True, exist_ok=True)
            kept = workplace / "kept"
            shutil.rmtree(kept, ignore_errors=True)
            kept.mkdir()
            make(workplace, kept)
            files: dict[str, Json] = {
                str(file.relative_to(kept)): self._state(file)
                for file in sorted(kept.rglob("*"))
                if file.is_file()
            }
            manifest = {"title": self.title, "recipe": self.recipe, "files": files}
            write_atomically(kept / MANIFEST, json.dumps(manifest, indent=1))
            kept.rename(self.path)
            shutil.rmtree(workplace, ignore_errors=True)
        sweep_workplaces(self.path.parent)
        return self.path

    def _state(self, file: Path) -> str:
        if self.deep:
            return digest_file(file)
        status = file.lstat()
        return f"{status.st_size} {status.st_mtime_ns}"


def sweep_workplaces(shelf: Path) -> None:
    """Remove what killed makers left on a shelf long ago and nobody has gone on with."""
    for workplace in shelf.glob("*.making"):
        with contextlib.suppress(OSError):
            if time.time() - workplace.stat().st_mtime > _ABANDONED:
                with claimed_if_free(workplace.with_suffix(".claim")) as free:
                    if free:
                        shutil.rmtree(workplace)


def _store_problem(error: OSError) -> str | None:
    """Return what is to be done where the store cannot be written; None for any other error."""
    root = store_root()
    # A copy that fails names where to last; what names no file wrote to an open one.
    name = error.filename2 or error.filename
    place = Path(os.fsdecode(name)) if name else root
    # It may be a folder above the store that cannot be made.
    if not place.is_relative_to(root) and not root.is_relative_to(place):
        return None
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return (
            f"no space left below {root} ({error.strerror}): free some there by `firsttouch store "
            "prune --keep 5G`, or set XDG_CACHE_HOME to a directory with room."
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return (
            f"cannot write below {root} ({error.strerror}): "
            "set XDG_CACHE_HOME to a directory that you can write."
        )
    return None


_entered: set[Path] = set()


def enter_run() -> None:
    """Say in the store that this process uses it, from now to its end."""
    root = store_root()
    if root in _entered:
        return
    # Who prunes looks at the runs once: none may begin in between.
    with claimed(root / PRUNING):
        run = ExitStack()
        # The name tells from when on the process may have used entries.
        name = f"{int(clock(root))}-{uuid.uuid4().hex}"
        run.enter_context(claimed(root / RUNS / name))
    atexit.register(run.close)
    _entered.add(root)


def note_use(file: Path) -> None:
    """Note that this process uses what `file` stands for, so that nobody prunes it from now on.

    `file` need not be there. Whether it is, is to be looked at afterwards: who
    prunes claims first and looks at the times then. So of a use and a prune
    one sees the other.
    """
    enter_run()
    with contextlib.suppress(OSError):
        os.utime(file)
    while is_claimed(store_root() / PRUNING):
        time.sleep(_POLL)
