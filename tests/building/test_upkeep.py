# SPDX-License-Identifier: GPL-2.0
"""firsttouch store: removes what was used longest ago, and nothing that is in use."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from firsttouch.building.locks import locked, unless_used
from firsttouch.building.outcomes import guest_lock, keep_outcome
from firsttouch.building.store import Entry
from firsttouch.building.upkeep import items, prune
from firsttouch.places import REPOSITORY
from tests.conftest import Firsttouch
from tests.support.full_disk import small_disk

KIB = 1024
# Fills a store and ends, so that no process uses the entries; then they age.
_FILL = """
import os, sys
from pathlib import Path
from firsttouch.building.store import Entry
from firsttouch.building.outcomes import keep_outcome
for name in sys.argv[1:]:
    make = lambda workplace, kept: (kept / "file").write_bytes(os.urandom(100 * 1024))
    Entry("kind", {"name": name}, f"thing {name}").obtain(make, print)
keep_outcome("ab" * 32, {"commands": []})
"""
_USE = """
import sys
from firsttouch.building.store import Entry
def make(workplace, kept):
    (workplace / "half").write_bytes(bytes(10 * 1024))
    print("making", flush=True)
    sys.stdin.readline()
    (kept / "file").write_text("x")
print(Entry("kind", {"name": sys.argv[1]}, f"thing {sys.argv[1]}").obtain(make, print), flush=True)
sys.stdin.readline()
"""


def _run(script: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY,
    )  # fmt: skip


def _entry(name: str) -> Entry:
    return Entry("kind", {"name": name}, f"thing {name}")


@pytest.fixture
def filled(own_cache: Path) -> Path:
    """A store with a to e, of a bit more than 100 KiB each, of which b was used last."""
    with _run(_FILL, *"abcde"):
        pass
    for age, name in enumerate("edcab"):
        used = time.time() - 1000 + age
        os.utime(_entry(name).path / "manifest.json", (used, used))
    (outcome,) = own_cache.glob("outcomes/*/*.json")
    os.utime(outcome, (time.time() - 500,) * 2)
    return own_cache


def _left() -> set[str]:
    return {item.title.removeprefix("thing ") for item in items() if item.kind == "kind"}


def test_what_the_store_holds_is_listed_with_what_was_used_last_first(filled: Path) -> None:
    listed = items()
    assert [item.title for item in listed] == ["ab" * 32, *(f"thing {name}" for name in "bacde")]
    assert all(100 * KIB < item.size < 120 * KIB for item in listed if item.kind == "kind")
    assert not any(item.in_use for item in listed)


def test_a_sparse_file_counts_as_what_it_takes_on_the_disk(filled: Path) -> None:
    with (_entry("a").path / "file").open("r+b") as disk:
        disk.truncate(1 << 30)
    assert all(100 * KIB < item.size < 120 * KIB for item in items() if item.kind == "kind")


def test_what_was_used_longest_ago_goes_first(filled: Path) -> None:
    assert [item.title for item in prune(250 * KIB)] == ["thing e", "thing d", "thing c"]
    assert _left() == {"a", "b"}
    assert prune(250 * KIB) == []
    prune(0)
    assert items() == []
    assert not list(filled.glob("*/.*"))


@pytest.fixture
def user(filled: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that uses d, which was used long ago."""
    with _run(_USE, "d") as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == str(_entry("d").path)
        yield process
        process.kill()


def test_what_a_living_run_uses_stays(user: subprocess.Popen[str]) -> None:
    assert [item.title for item in items() if item.in_use] == ["thing d"]
    prune(0)
    assert _left() == {"d"}
    user.kill()
    user.wait()
    prune(0)
    assert _left() == set()


def test_what_is_being_made_stays_and_what_a_killed_maker_left_goes(filled: Path) -> None:
    with _run(_USE, "new") as maker:
        assert maker.stdout is not None and maker.stdin is not None
        assert maker.stdout.readline() == "making\n"
        prune(0)
        half = list(filled.glob("kind/*.making/half"))
        assert len(half) == 1
        maker.stdin.write("\n")
        maker.stdin.flush()
        assert maker.stdout.readline().strip() == str(_entry("new").path)
        assert (_entry("new").path / "file").read_text() == "x"
        maker.stdin.write("\n")
        maker.stdin.flush()
    with _run(_USE, "newer") as maker:
        assert maker.stdout is not None
        assert maker.stdout.readline() == "making\n"
        maker.kill()
    assert "unfinished" in {item.title for item in items()}
    prune(0)
    assert items() == []
    assert not list(filled.glob("kind/[!.]*"))


@pytest.mark.long
def test_a_use_that_begins_while_the_entry_is_pruned_waits_for_the_end(filled: Path) -> None:
    """Otherwise it could get an entry that is removed a moment later."""
    manifest = _entry("d").path / "manifest.json"
    with contextlib.ExitStack() as pruning:
        assert pruning.enter_context(unless_used(manifest))
        with _run(_USE, "d") as process:
            assert process.stdout is not None
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(timeout=2)
            shutil.rmtree(_entry("d").path)
            pruning.close()
            # Its wait has ended, and it makes the entry.
            assert process.stdout.readline() == "making\n"
            process.kill()


_KILLED = """
import os, shutil, signal, sys
from pathlib import Path
from firsttouch.building.upkeep import prune
def remove(path, *_):
    next(file for file in Path(path).iterdir() if file.name == "file").unlink()
    os.kill(os.getpid(), signal.SIGKILL)
shutil.rmtree = remove
prune(0)
"""


def test_a_prune_that_is_killed_leaves_nothing_half_and_the_next_one_ends_it(
    filled: Path,
) -> None:
    with _run(_KILLED) as killed:
        pass
    assert killed.returncode == -signal.SIGKILL
    assert _left() == {"a", "b", "c", "d"}
    assert all(_entry(name).contents() for name in "abcd")
    assert _entry("e").use() is None
    assert list(filled.glob("kind/.*"))
    prune(1 << 30)
    assert not list(filled.glob("kind/.*"))
    assert _left() == {"a", "b", "c", "d"}
    # The same again, after one of that name was made and pruned.
    _entry("e").obtain(lambda _, product: (product / "file").touch(), print)
    assert "e" in _left()


def test_what_killed_processes_left_of_files_is_swept_away_in_time(filled: Path) -> None:
    deep = ("", "kind", "outcomes/ab")
    for folder in (filled / name for name in deep):
        folder.mkdir(parents=True, exist_ok=True)
        for name, age in ((".young.0", 3600), (".old.0", 2 * 24 * 3600)):
            (folder / name).touch()
            os.utime(folder / name, (time.time() - age,) * 2)
    prune(1 << 30)
    litter = [path.name for path in filled.rglob(".*.0")]
    assert litter == [".young.0"] * len(deep)


def test_the_lock_of_a_run_that_was_killed_is_swept_away(filled: Path) -> None:
    guest_lock("ab" * 32).touch()
    with locked(guest_lock("cd" * 32)):
        prune(1 << 30)
        assert [*filled.glob("outcomes/*/*.lock")] == [guest_lock("cd" * 32)]


def test_documents_such_as_surveys_are_listed_and_pruned(filled: Path) -> None:
    (filled / "surveys").mkdir()
    (filled / "surveys/boot.json").write_text("{}")
    assert "boot" in {item.title for item in items() if item.kind == "surveys"}
    prune(0)
    assert items() == []


def test_results_are_pruned_as_all_else(filled: Path) -> None:
    keep_outcome("cd" * 32, {"commands": []})
    os.utime(filled / "outcomes/cd" / f"{'cd' * 32}.json", (0, 0))
    size = sum(item.size for item in items())
    assert [item.title for item in prune(size - 1)] == ["cd" * 32]


def test_on_a_full_disk_there_is_room_to_prune(tmp_path: Path) -> None:
    script = """
import os, sys
from pathlib import Path
from firsttouch.building.store import Entry
from firsttouch.building.upkeep import items, prune
if os.fork() == 0:
    make = lambda workplace, kept: (kept / "file").write_bytes(os.urandom(100 * 1024))
    Entry("kind", {}, "thing").obtain(make, print)
    sys.exit()
os.wait()
with open(os.environ["XDG_CACHE_HOME"] + "/filler", "wb", buffering=0) as filler:
    try:
        while filler.write(bytes(512)):
            pass
    except OSError as error:
        print(error.strerror)
print([one.title for one in prune(0)], [one.title for one in items()])
"""
    with small_disk(tmp_path / "small", 128 << 10) as disk:
        done = subprocess.run(
            disk.command([sys.executable, "-c", script]),
            env={**os.environ, "XDG_CACHE_HOME": str(disk.path)}, cwd=REPOSITORY,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert done.stdout == "No space left on device\n['thing'] []\n", done.stderr


# -- the command line


def test_store_list_and_prune_print_what_there_is_and_what_went(
    firsttouch: Firsttouch, filled: Path
) -> None:
    listed = firsttouch("store", "list")
    assert listed.returncode == 0, listed.stderr
    first, *lines = listed.stdout.splitlines()
    assert str(filled) in first
    assert [line.split()[-1] for line in lines[:5]] == list("bacde")
    assert all(re.search(r"\b1[01]\d(\.\d+)? KiB", line) for line in lines[:5])
    assert "1 guests" in lines[5]
    pruned = firsttouch("store", "prune", "--keep", "250K")
    assert pruned.returncode == 0, pruned.stderr
    assert [line.split()[-1] for line in pruned.stdout.splitlines()[:3]] == list("edc")
    assert _left() == {"a", "b"}
    assert firsttouch("store", "prune", "--keep", "0").returncode == 0
    assert _left() == set()


def test_store_list_marks_what_is_in_use(
    firsttouch: Firsttouch, user: subprocess.Popen[str]
) -> None:
    lines = firsttouch("store", "list").stdout.splitlines()
    assert [line.split("  ")[-1] for line in lines if "in use" in line] == ["thing d, in use"]


@pytest.mark.parametrize("keep", ["all", "-1", "1T"])
def test_a_size_that_is_none_prunes_nothing(
    firsttouch: Firsttouch, filled: Path, keep: str
) -> None:
    done = firsttouch("store", "prune", f"--keep={keep}")
    assert done.returncode == 2
    assert "--keep" in done.stderr and keep in done.stderr
    assert _left() == set("abcde")
