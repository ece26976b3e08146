# SPDX-License-Identifier: GPL-2.0
"""The store: whole entries or none, checked when used, made once, pruned when nobody uses it."""

import errno
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from firsttouch.building.store import (
    Entry,
    Maker,
    items,
    keep_outcome,
    locked,
    outcome_place,
    prune,
    store_root,
    stored_outcome,
)
from firsttouch.errors import HostError, UserError
from firsttouch.files import REPOSITORY, digest
from firsttouch.tables import Json
from tests.conftest import Firsttouch
from tests.support.full_disk import small_disk

KIB = 1024
_KEY = "ab" * 32


def _entry(name: str, *, deep: bool = True) -> Entry:
    return Entry("kind", {"name": name}, f"thing {name}", deep=deep)


def _maker(contents: str) -> Maker:
    def make(_: Path, product: Path) -> None:
        (product / "file").write_text(contents)

    return make


# -- entries


def test_an_entry_is_made_once_and_has_its_recipe(own_cache: Path) -> None:
    path = _entry("a").obtain(_maker("one"), print)
    assert _entry("a").obtain(_maker("two"), print) == path
    assert (path / "file").read_text() == "one"
    assert list(own_cache.glob("*/*[!k]")) == [path]
    manifest = json.loads((path / "manifest.json").read_text())
    assert (manifest["recipe"], manifest["title"]) == ({"name": "a"}, "thing a")
    # Kernels of older checkouts are found by it.
    assert path.name == digest({"name": "a"})[:32]


_DAMAGE: dict[str, Callable[[Path], object]] = {
    "truncated": lambda file: file.write_text("cont"),
    "changed": lambda file: file.write_text("CONTENTS"),
    "removed": lambda file: file.unlink(),
    "manifest": lambda file: (file.parent / "manifest.json").write_text('{"file": '),
}


@pytest.mark.parametrize("damage", _DAMAGE)
@pytest.mark.parametrize("deep", [True, False])
def test_a_damaged_entry_is_made_again(own_cache: Path, damage: str, deep: bool) -> None:
    said: list[str] = []
    entry = _entry("b", deep=deep)
    file = entry.obtain(_maker("contents"), said.append) / "file"
    _DAMAGE[damage](file)
    entry.obtain(_maker("contents"), said.append)
    assert file.read_text() == "contents"
    assert [line for line in said if "is damaged; making it again" in line] == said
    assert entry.use() == file.parent


@pytest.mark.parametrize("deep", [True, False])
def test_a_link_out_of_the_store_counts_by_its_target(
    own_cache: Path, tmp_path: Path, deep: bool
) -> None:
    """An unpacked Debian root has links to files that the host may have, too, such as in /etc."""
    (tmp_path / "theirs").write_text("one")

    def make(_: Path, product: Path) -> None:
        (product / "link").symlink_to(tmp_path / "theirs")
        (product / "dangling").symlink_to("nowhere")

    entry = _entry("c", deep=deep)
    path = entry.obtain(make, print)
    (tmp_path / "theirs").write_text("another, longer")
    assert entry.use() == path
    (path / "dangling").unlink()
    (path / "dangling").symlink_to("else where")
    assert entry.use() is None


# -- several processes

_MAKE = """
import sys
from pathlib import Path
from firsttouch.building.store import Entry
def make(workplace, kept):
    (workplace / "half").write_text("x")
    print("making", flush=True)
    sys.stdin.readline()
    (kept / "file").write_text("x")
entry = Entry("kind", {"name": sys.argv[1]}, f"thing {sys.argv[1]}")
entry.obtain(make, lambda line: print(line, flush=True))
print("has it", flush=True)
sys.stdin.readline()
"""


class _Process(subprocess.Popen[str]):
    def __init__(self, script: str, *arguments: str) -> None:
        super().__init__(
            [sys.executable, "-c", script, *arguments], cwd=REPOSITORY, text=True, bufsize=1,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def line(self) -> str:
        assert self.stdout
        return self.stdout.readline().rstrip("\n")

    def go_on(self) -> None:
        assert self.stdin
        self.stdin.write("\n")


def test_two_that_race_make_an_entry_once(own_cache: Path) -> None:
    with _Process(_MAKE, "d") as first, _Process(_MAKE, "d") as second:
        said = {process.line(): process for process in (first, second)}
        maker = said.pop("making")
        ((waiting, waiter),) = said.items()
        assert waiting.startswith("Another run is making thing d") and "waiting for it" in waiting
        maker.go_on()
        assert waiter.line() == maker.line() == "has it"
        for process in (first, second):
            process.go_on()


def test_a_killed_maker_frees_its_lock_and_the_next_clears_what_it_left(own_cache: Path) -> None:
    with _Process(_MAKE, "d") as maker:
        assert maker.line() == "making"
        maker.kill()
    (half,) = own_cache.glob("kind/*.making/half")

    def make(workplace: Path, product: Path) -> None:
        assert not half.exists() and [*workplace.iterdir()] == [product]

    path = _entry("d").obtain(make, pytest.fail)
    assert [*own_cache.glob("kind/*[!k]")] == [path]


def test_a_full_disk_is_one_sentence_within_seconds(tmp_path: Path) -> None:
    script = """
import argparse, os, sys
from firsttouch.building.store import Entry
from firsttouch.cli.main import exit_status
def make(name, size):
    Entry("kind", {"name": name}, name).obtain(
        lambda _, kept: (kept / "file").write_bytes(os.urandom(size)), print)
    return 0
if os.fork() == 0:
    os._exit(make("small", 50000))
os.wait()
sys.exit(exit_status(lambda: make("large", 1 << 20), argparse.Namespace()))
"""
    with small_disk(tmp_path / "small", 256 << 10) as disk:

        def run(*words: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [sys.executable, *words], cwd=REPOSITORY, timeout=30,
                env={**os.environ, "XDG_CACHE_HOME": str(disk)},
                capture_output=True, text=True, check=False,
            )  # fmt: skip

        full = run("-c", script)
        pruned = run("-m", "firsttouch", "store", "prune", "--keep", "1")
    assert full.returncode == 2
    (sentence,) = full.stderr.splitlines()
    assert re.search(r"firsttouch: No space left on device.*store prune.*XDG_CACHE_HOME", sentence)
    assert [line.split()[-1] for line in pruned.stdout.splitlines()[:2]] == ["unfinished", "small"]


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS])
def test_a_file_system_without_locks_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(HostError, match="without locks"), locked(tmp_path / "lock"):
        pytest.fail("held")


def test_a_store_in_no_certain_place_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    with pytest.raises(UserError, match=r"XDG_CACHE_HOME is 'cache': set it to an absolute path"):
        store_root()


# -- outcomes of guests


@pytest.mark.parametrize("long", [0, 50_000])
def test_a_damaged_outcome_is_missing(own_cache: Path, long: int) -> None:
    outcome: dict[str, Json] = {
        "commands": [{"lines": [{"page_faults": 12345, "more": "0123456789" * long}]}]
    }
    keep_outcome(_KEY, outcome)
    stored = stored_outcome(_KEY)
    assert stored is not None and stored.rest() == outcome
    file = outcome_place(_KEY)
    data = file.read_bytes()
    assert len(data) < 10_000
    changed = data[:40] + bytes([data[40] ^ 1]) + data[41:]
    for damaged in (data[:-10], changed, b"", b"\xff\xfe{"):
        file.write_bytes(damaged)
        assert stored_outcome(_KEY) is None


# -- list and prune

# Fills a store and ends, so that no process uses the entries; then they age.
_FILL = """
import os, sys
from firsttouch.building.store import Entry, keep_outcome
for name in "abcde":
    make = lambda workplace, kept: (kept / "file").write_bytes(os.urandom(100 * 1024))
    Entry("kind", {"name": name}, f"thing {name}").obtain(make, print)
keep_outcome("ab" * 32, {"commands": []})
"""


@pytest.fixture
def filled(own_cache: Path) -> Path:
    """A store with a to e, of a bit more than 100 KiB each, of which b was used last."""
    with _Process(_FILL):
        pass
    for age, name in enumerate("edcab"):
        used = time.time() - 1000 + age
        os.utime(_entry(name).path / "manifest.json", (used, used))
    os.utime(outcome_place(_KEY), (time.time() - 500,) * 2)
    return own_cache


def _left() -> set[str]:
    return {item.title.removeprefix("thing ") for item in items() if item.kind == "kind"}


def test_what_was_used_longest_ago_goes_first(filled: Path) -> None:
    # What Debian had at the last fetch stays, so that the same kernels are built again.
    pointer = filled / "packages/linux-source-6.12.json"
    pointer.parent.mkdir()
    pointer.write_text("{}")
    # A sparse file counts as what it takes on the disk.
    with (_entry("a").path / "file").open("r+b") as disk:
        disk.truncate(1 << 30)
    listed = items()
    assert [item.title for item in listed] == [_KEY, *(f"thing {n}" for n in "bacde")]
    assert all(100 * KIB < item.size < 120 * KIB for item in listed if item.kind == "kind")
    assert [item.title for item in prune(250 * KIB)] == ["thing e", "thing d", "thing c"]
    assert _left() == {"a", "b"}
    assert prune(250 * KIB) == []
    prune(0)
    assert items() == []
    assert [path for path in filled.rglob("*") if not path.is_dir()] == [
        filled / ".lock", pointer,
    ]  # fmt: skip


def test_a_prune_waits_for_no_user_and_clears_what_killed_ones_left(filled: Path) -> None:
    with _Process(_MAKE, "new") as maker:
        assert maker.line() == "making"
        with pytest.raises(UserError, match="another run uses"):
            prune(0)
        assert _left() == {*"abcde", "unfinished"}
        maker.kill()
    outcome_place(_KEY).with_suffix(".lock").touch()
    for folder in (filled / "kind", outcome_place(_KEY).parent):
        (folder / ".half-written.0").touch()
    assert [item.title for item in prune(1 << 30)] == ["unfinished"]
    assert not [file for file in filled.rglob("*/*") if file.suffix in (".lock", ".0")]
    assert _left() == set("abcde")


_KILLED = """
import os, shutil, signal, sys
from pathlib import Path
from firsttouch.building.store import prune
def remove(path, *_):
    (Path(path) / "file").unlink()
    os.kill(os.getpid(), signal.SIGKILL)
shutil.rmtree = remove
prune(0)
"""


def test_a_killed_prune_leaves_nothing_half_and_the_next_ends_it(filled: Path) -> None:
    with _Process(_KILLED) as killed:
        pass
    assert killed.returncode == -signal.SIGKILL
    assert _left() == set("abcd") and all(_entry(name).use() for name in "abcd")
    assert _entry("e").use() is None
    assert len(list(filled.glob("kind/.*"))) == 1
    prune(1 << 30)
    assert not list(filled.glob("kind/.*"))


def test_store_list_and_prune_print_what_there_is_and_what_went(
    firsttouch: Firsttouch, filled: Path
) -> None:
    first, *lines = firsttouch("store", "list").stdout.splitlines()
    assert str(filled) in first
    titles = [line.split("thing ")[-1] for line in lines[:5]]
    assert titles == ["b", "a", "c", "d", "e"]
    assert all(" 0.1 MiB " in line for line in lines[:5])
    assert "1 guests" in lines[5]
    pruned = firsttouch("store", "prune", "--keep", "250K")
    assert [line.split()[-1] for line in pruned.stdout.splitlines()[:3]] == list("edc")
    assert _left() == {"a", "b"}
