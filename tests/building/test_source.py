# SPDX-License-Identifier: GPL-2.0
"""Kernel sources that a user names by --source: trees and git trees."""

from pathlib import Path

import pytest

from firsttouch.building.source import tree_digest
from firsttouch.cli.bisect import Repository
from tests.lab.conftest import git


@pytest.fixture
def checkout(tmp_path: Path, own_cache: Path) -> Path:
    tree = tmp_path / "checkout"
    (tree / "mm").mkdir(parents=True)
    (tree / "mm/a.c").write_text("a\n")
    (tree / ".gitignore").write_text("*.o\n")
    git(tree, "init", "-q")
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", "first")
    return tree


def _digest(tree: Path) -> str:
    return tree_digest.__wrapped__(tree)


@pytest.mark.parametrize("tracked", [True, False], ids=["git tree", "plain folder"])
def test_the_digest_of_a_tree_covers_every_file(checkout: Path, tracked: bool) -> None:
    if not tracked:
        (checkout / ".git").rename(checkout.parent / "gone")
    before = [_digest(checkout)]
    for name in ("mm/a.c", "mm/new.c", "mm/ignored.o"):
        (checkout / name).write_text(f"{name}\n")
        before.append(_digest(checkout))
    assert len(set(before)) == 4
    assert _digest(checkout) == before[-1]


def test_the_digest_of_a_git_tree_leaves_its_repository_alone(checkout: Path) -> None:
    def state() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in checkout.rglob(".git/**/*") if path.is_file()}

    (checkout / "mm/new.c").write_text("new\n")
    before = state()
    _digest(checkout)
    assert state() == before
    # A folder of it has a digest of its own.
    below = _digest(checkout / "mm")
    (checkout / "mm/a.c").write_text("b\n")
    assert _digest(checkout / "mm") != below


@pytest.mark.parametrize(
    ("skipped", "found", "sure"), [((), 4, True), ((1, 6), 4, True), ((3,), 4, False)]
)
def test_a_bisection_finds_the_first_bad_commit(
    checkout: Path, skipped: tuple[int, ...], found: int, sure: bool
) -> None:
    for number in range(2, 9):
        (checkout / "mm/a.c").write_text(f"{number}\n")
        git(checkout, "commit", "-qam", f"is the first bad commit {number}")
    commits = git(checkout, "rev-list", "--reverse", "HEAD").split()
    judged: list[str] = []

    def judge(commit: str) -> bool | None:
        judged.append(commit)
        place = commits.index(commit)
        return None if place in skipped else place >= 4

    culprit = Repository(checkout).first_bad(commits[0], commits[-1], judge)
    assert culprit == (commits[found], sure)
    assert len(judged) == len(set(judged)) <= 5
