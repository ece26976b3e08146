# SPDX-License-Identifier: GPL-2.0
"""Kernel trees that a user names by --source: their digest, and the commits of a git tree."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from firsttouch.building.history import Repository, Verdict
from firsttouch.building.source import tree_digest, user_source
from firsttouch.files import digest_file
from firsttouch.progress import Reporter


def _git(tree: Path, *words: str) -> str:
    names = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    done = subprocess.run(
        ["git", *names, *words], cwd=tree, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def _state(tree: Path) -> dict[str, bytes]:
    """The files of a repository's own folder."""
    return {str(path): path.read_bytes() for path in (tree / ".git").rglob("*") if path.is_file()}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    tree = tmp_path / "checkout"
    (tree / "mm").mkdir(parents=True)
    (tree / "mm/a.c").write_text("a\n")
    (tree / ".gitignore").write_text("*.o\n")
    _git(tree, "init", "-q")
    _git(tree, "add", "-A")
    _git(tree, "commit", "-qm", "first")
    return tree


def _digest(tree: Path) -> str:
    return tree_digest.__wrapped__(tree)


@pytest.mark.parametrize("tracked", [True, False], ids=["git tree", "plain folder"])
def test_the_digest_of_a_tree_covers_every_file(
    checkout: Path, own_cache: Path, tracked: bool
) -> None:
    if not tracked:
        (checkout / ".git").rename(checkout.parent / "gone")
    before = [_digest(checkout)]
    for name in ("mm/a.c", "mm/new.c", "mm/ignored.o"):
        (checkout / name).write_text(f"{name}\n")
        before.append(_digest(checkout))
    assert len(set(before)) == 4
    assert _digest(checkout) == before[-1]


def test_the_digest_of_a_git_tree_leaves_its_repository_alone(
    checkout: Path, own_cache: Path
) -> None:
    (checkout / "mm/new.c").write_text("new\n")
    before = _state(checkout)
    tree_digest(checkout)
    assert _state(checkout) == before


def test_a_folder_of_a_git_tree_has_a_digest_of_its_own(checkout: Path, own_cache: Path) -> None:
    below = _digest(checkout / "mm")
    (checkout / "mm/a.c").write_text("b\n")
    assert _digest(checkout / "mm") != below


def test_the_files_of_a_tree_are_read_once(
    fake_linux: Path, configured_cache: Path, reporter: Reporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []

    def digest(file: Path) -> str:
        read.append(file)
        return digest_file(file)

    monkeypatch.setattr("firsttouch.building.source.digest_file", digest)
    first, second = user_source(fake_linux, reporter), user_source(fake_linux, reporter)
    assert first.identity == second.identity
    assert len(read) == len(set(read)) == 3


@pytest.fixture
def history(checkout: Path) -> tuple[Path, list[str]]:
    """A repository and its commits, the oldest first."""
    for number in range(2, 9):
        (checkout / "mm/a.c").write_text(f"{number}\n")
        _git(checkout, "commit", "-qam", f"is the first bad commit {number}")
    return checkout, _git(checkout, "rev-list", "--reverse", "HEAD").split()


@pytest.mark.parametrize(
    ("skipped", "found", "sure"), [((), 4, True), ((1, 6), 4, True), ((3,), 4, False)]
)
def test_git_bisect_finds_the_first_bad_commit(
    history: tuple[Path, list[str]], skipped: tuple[int, ...], found: int, sure: bool
) -> None:
    repository, commits = history
    judged: list[str] = []

    def judge(commit: str) -> Verdict:
        judged.append(commit)
        place = commits.index(commit)
        return "skip" if place in skipped else "bad" if place >= 4 else "good"

    culprit = Repository(repository).first_bad(commits[0], commits[-1], judge)
    assert culprit == (commits[found], sure)
    assert len(judged) == len(set(judged)) <= 5
