# SPDX-License-Identifier: GPL-2.0
"""The cache: whole entries or none, checked when used, made once."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from firsttouch.build.store import Entry, write_atomically
from firsttouch.errors import HostError


def _maker(contents: str, calls: list[str]):  # type: ignore[no-untyped-def]
    def make(_: Path, kept: Path) -> None:
        calls.append(contents)
        (kept / "file").write_text(contents)

    return make


def test_an_entry_is_made_once_and_then_found(own_cache: Path) -> None:
    calls: list[str] = []
    for _ in range(2):
        path = Entry("kind", "a" * 64).obtain(_maker("one", calls), print)
        assert (path / "file").read_text() == "one"
    assert calls == ["one"]
    assert path.is_relative_to(own_cache)


@pytest.mark.parametrize("damage", ["truncated", "changed", "removed", "manifest"])
def test_a_damaged_entry_is_noticed_and_made_again(own_cache: Path, damage: str) -> None:
    said: list[str] = []
    entry = Entry("kind", "b" * 64)
    file = entry.obtain(_maker("contents", []), said.append) / "file"
    match damage:
        case "truncated":
            file.write_text("cont")
        case "changed":
            file.write_text("CONTENTS")
        case "removed":
            file.unlink()
        case "manifest":
            (file.parent / "manifest.json").write_text('{"file": ')
    calls: list[str] = []
    again = entry.obtain(_maker("contents", calls), said.append) / "file"
    assert again.read_text() == "contents"
    assert calls == ["contents"]
    assert any("damaged" in line for line in said)


def test_a_maker_that_fails_leaves_no_entry_but_its_workplace(own_cache: Path) -> None:
    entry = Entry("kind", "c" * 64)

    def fail(workplace: Path, _: Path) -> None:
        (workplace / "half").write_text("what was done")
        raise RuntimeError("broken off")

    with pytest.raises(RuntimeError):
        entry.obtain(fail, print)
    assert not entry.path.exists()

    def go_on(workplace: Path, kept: Path) -> None:
        (kept / "file").write_text((workplace / "half").read_text())

    assert (entry.obtain(go_on, print) / "file").read_text() == "what was done"
    assert not entry.workplace.exists()


def test_two_processes_make_an_entry_once_and_the_second_says_that_it_waits(
    own_cache: Path, tmp_path: Path
) -> None:
    script = (
        "import sys, time; from pathlib import Path; from firsttouch.build.store import Entry\n"
        "def make(w, k):\n"
        "    print('making', flush=True); time.sleep(1); (k / 'file').write_text('x')\n"
        "Entry('kind', 'd' * 64).obtain(make, lambda line: print(line, flush=True))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True
    ) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "making\n"
        second = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        )
    assert "making\n" not in second.stdout
    assert "waiting for it" in second.stdout


def test_what_a_killed_maker_left_long_ago_is_swept_away(own_cache: Path) -> None:
    recent, old = own_cache / "kind/recent.making", own_cache / "kind/old.making"
    for workplace in (recent, old):
        workplace.mkdir(parents=True)
        (workplace / "half").write_text("something")
    os.utime(old, (0, 0))
    Entry("kind", "f" * 64).obtain(_maker("x", []), print)
    assert recent.exists()
    assert not old.exists()


def test_no_room_is_one_sentence_that_names_the_mend(own_cache: Path) -> None:
    def full(_: Path, kept: Path) -> None:
        raise OSError(28, "No space left on device", str(kept))

    with pytest.raises(HostError, match=r"No space left on device.*XDG_CACHE_HOME"):
        Entry("kind", "e" * 64).obtain(full, print)


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "file"
    seen: set[str] = set()
    stop = threading.Event()

    def watch() -> None:
        while not stop.is_set():
            if file.exists():
                seen.add(file.read_text())

    watcher = threading.Thread(target=watch)
    watcher.start()
    for number in range(200):
        write_atomically(file, str(number % 10) * 5000)
    stop.set()
    watcher.join()
    assert seen <= {str(number) * 5000 for number in range(10)}
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
