# SPDX-License-Identifier: GPL-2.0
"""The store: whole entries or none, checked when used, made once; its errors are accurate."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from firsttouch.building.store import Entry, Maker, store_root
from firsttouch.errors import HostError, UserError
from firsttouch.files import digest
from firsttouch.places import REPOSITORY


def _entry(name: str, *, deep: bool = True) -> Entry:
    return Entry("kind", {"name": name, "list": [1, None]}, f"thing {name}", deep)


def _maker(contents: str, calls: list[str]) -> Maker:
    def make(_: Path, product: Path) -> None:
        calls.append(contents)
        (product / "file").write_text(contents)

    return make


def test_an_entry_is_made_once_and_then_found(own_cache: Path) -> None:
    calls: list[str] = []
    for _ in range(2):
        path = _entry("a").obtain(_maker("one", calls), print)
        assert (path / "file").read_text() == "one"
    assert calls == ["one"]
    assert path.is_relative_to(own_cache)
    assert sorted(file.name for file in path.parent.iterdir()) == [path.name]


def test_the_recipe_stands_in_the_manifest_and_gives_the_name(own_cache: Path) -> None:
    path = _entry("a").obtain(_maker("one", []), print)
    manifest = json.loads((path / "manifest.json").read_text())
    assert manifest["recipe"] == {"name": "a", "list": [1, None]}
    assert manifest["title"] == "thing a"
    assert path.name == digest(manifest["recipe"])[: len(path.name)]
    assert _entry("b").path != path


@pytest.mark.parametrize("damage", ["truncated", "changed", "removed", "manifest", "recipe"])
@pytest.mark.parametrize("deep", [True, False])
def test_a_damaged_entry_is_noticed_and_made_again(
    own_cache: Path, damage: str, deep: bool
) -> None:
    said: list[str] = []
    entry = _entry("b", deep=deep)
    file = entry.obtain(_maker("contents", []), said.append) / "file"
    manifest = file.parent / "manifest.json"
    match damage:
        case "truncated":
            file.write_text("cont")
        case "changed":
            file.write_text("CONTENTS")
        case "removed":
            file.unlink()
        case "manifest":
            manifest.write_text('{"file": ')
        case "recipe":
            manifest.write_text(manifest.read_text().replace('"name": "b"', '"name": "a"'))
    calls: list[str] = []
    again = entry.obtain(_maker("contents", calls), said.append) / "file"
    assert again.read_text() == "contents"
    assert calls == ["contents"]
    assert any("damaged" in line for line in said)
    assert entry.obtain(_maker("contents", calls), said.append) == file.parent
    assert calls == ["contents"]


@pytest.mark.parametrize("deep", [True, False])
def test_a_link_out_of_the_store_counts_by_its_target(
    own_cache: Path, tmp_path: Path, deep: bool
) -> None:
    """An unpacked Debian root has links to files that the host may have, too, such as in /etc."""
    theirs = tmp_path / "file of the host"
    theirs.write_text("one")

    def make(_: Path, product: Path) -> None:
        (product / "link").symlink_to(theirs)
        (product / "dangling").symlink_to("nowhere")

    entry = _entry("c", deep=deep)
    path = entry.obtain(make, print)
    theirs.write_text("another, longer")
    assert entry.use() == path
    (path / "dangling").unlink()
    (path / "dangling").symlink_to("else where")
    assert entry.use() is None


def test_a_maker_that_fails_leaves_no_entry_but_its_workplace(own_cache: Path) -> None:
    entry = _entry("c")

    def fail(workplace: Path, product: Path) -> None:
        (workplace / "half").write_text("what was done")
        (product / "file").write_text("half of it")
        raise RuntimeError("broken off")

    with pytest.raises(RuntimeError):
        entry.obtain(fail, print)
    assert not entry.path.exists()

    def go_on(workplace: Path, product: Path) -> None:
        assert not list(product.iterdir())
        (product / "file").write_text((workplace / "half").read_text())

    assert (entry.obtain(go_on, print) / "file").read_text() == "what was done"
    assert list(own_cache.glob("kind/*")) == [entry.path]


_MAKE = """
import sys
from pathlib import Path
from firsttouch.building.store import Entry
def make(workplace, kept):
    print("making", flush=True)
    sys.stdin.readline()
    (kept / "file").write_text("x")
Entry("kind", {"name": "d"}, "thing d").obtain(make, lambda line: print(line, flush=True))
print("has it", flush=True)
"""


def _start() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _MAKE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        cwd=REPOSITORY,
    )  # fmt: skip


def test_two_processes_make_an_entry_once_and_the_second_says_that_it_waits(
    own_cache: Path,
) -> None:
    with _start() as first, _start() as second:
        assert first.stdin and first.stdout and second.stdin and second.stdout
        said = {process.stdout.readline(): process for process in (first, second) if process.stdout}
        maker = said.pop("making\n")
        ((waiting, waiter),) = said.items()
        assert "thing d" in waiting and "waiting for it" in waiting
        assert maker.stdin and waiter.stdout
        maker.stdin.write("\n")
        maker.stdin.flush()
        assert waiter.stdout.read() == "has it\n"
    assert first.returncode == second.returncode == 0


def test_what_a_killed_maker_left_is_gone_on_with_at_once(own_cache: Path) -> None:
    with _start() as first:
        assert first.stdout
        assert first.stdout.readline() == "making\n"
        first.kill()
    said: list[str] = []
    entry = Entry("kind", {"name": "d"}, "thing d")
    entry.obtain(_maker("x", []), said.append)
    assert not said
    assert [path.name for path in own_cache.glob("kind/[!.]*")] == [entry.path.name]


def test_what_a_killed_maker_left_long_ago_is_swept_away(own_cache: Path) -> None:
    recent, old = own_cache / "kind/recent.making", own_cache / "kind/old.making"
    for workplace in (recent, old):
        workplace.mkdir(parents=True)
        (workplace / "half").write_text("something")
    os.utime(old, (0, 0))
    _entry("f").obtain(_maker("x", []), print)
    assert recent.exists()
    assert not old.exists()


def _failing(number: int, *names: str | None) -> Maker:
    def fail(_: Path, product: Path) -> None:
        places = [None if name is None else str(product / name) for name in names]
        raise OSError(number, os.strerror(number), places[0], None, *places[1:])

    return fail


@pytest.mark.parametrize("name", ["file", None], ids=["named", "written"])
def test_no_room_is_one_sentence_that_says_how_to_make_some(
    own_cache: Path, name: str | None
) -> None:
    with pytest.raises(HostError, match=r"No space left on device.*store prune.*XDG_CACHE_HOME"):
        _entry("e").obtain(_failing(errno.ENOSPC, name), print)


def test_a_home_that_cannot_be_made_is_the_stores_place(monkeypatch: pytest.MonkeyPatch) -> None:
    # Root itself makes no folder there.
    monkeypatch.setenv("XDG_CACHE_HOME", "/sys/no-home/.cache")
    with pytest.raises(HostError, match=r"cannot write below /sys/no-home/.cache.*XDG_CACHE_HOME"):
        _entry("e").obtain(lambda *_: None, print)


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.EPERM])
def test_a_store_that_may_not_be_written_needs_no_room(own_cache: Path, number: int) -> None:
    with pytest.raises(HostError, match=r"cannot write below .*XDG_CACHE_HOME") as error:
        _entry("e").obtain(_failing(number, "file"), print)
    assert "prune" not in str(error.value)


@pytest.mark.parametrize(
    ("number", "names"),
    [
        (errno.ENOENT, ("file",)),
        (errno.ENOSPC, ("/elsewhere/file",)),
        (errno.EACCES, ("/elsewhere/file",)),
        # A copy out of the store: the destination is full, not the store.
        (errno.ENOSPC, ("file", "/elsewhere/file")),
    ],
    ids=str,
)
def test_what_has_nothing_to_do_with_the_store_is_not_blamed_on_it(
    own_cache: Path, number: int, names: tuple[str, ...]
) -> None:
    with pytest.raises(OSError) as error:
        _entry("e").obtain(_failing(number, *names), print)
    assert error.value.errno == number


def test_a_store_in_no_certain_place_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    with pytest.raises(UserError, match=r"XDG_CACHE_HOME is 'cache': set it to an absolute path"):
        store_root()
