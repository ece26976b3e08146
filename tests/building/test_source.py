# SPDX-License-Identifier: GPL-2.0
"""Kernel sources that a user names by --source: trees, git trees and archives."""

import subprocess
from pathlib import Path

import pytest

from firsttouch.building.source import tree_digest, user_source
from firsttouch.cli.bisect import Repository
from firsttouch.errors import UserError
from firsttouch.progress import Reporter

# -- archives


def _tarball(tree: Path, archive: Path) -> Path:
    subprocess.run(["tar", "-caf", archive, "-C", tree.parent, tree.name], check=True)
    return archive


@pytest.mark.parametrize("name", ["linux-6.12.1.tar.xz", "linux_6.12.1.orig.tar.gz"])
def test_a_tarball_is_unpacked_once_under_its_digest(
    fake_linux: Path, own_cache: Path, tmp_path: Path, reporter: Reporter, name: str
) -> None:
    archive = _tarball(fake_linux, tmp_path / name)
    source = user_source(archive, reporter)
    makefile = source.tree() / "Makefile"
    assert makefile.is_relative_to(own_cache / "trees")
    assert makefile.read_bytes() == (fake_linux / "Makefile").read_bytes()
    before = makefile.stat().st_ino
    # Moved and renamed it is the same source.
    again = user_source(archive.rename(tmp_path / f"kept-{name}"), reporter)
    assert (again.identity, again.tree()) == (source.identity, source.tree())
    assert makefile.stat().st_ino == before
    (fake_linux / "README").write_text("changed")
    other = user_source(_tarball(fake_linux, tmp_path / f"two-{name}"), reporter)
    assert other.identity != source.identity
    assert (other.tree() / "README").read_text() == "changed"


def test_what_is_no_kernel_is_refused_by_its_own_name(
    own_cache: Path, tmp_path: Path, reporter: Reporter
) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/a").write_text("a")
    others = _tarball(tmp_path / "notes", tmp_path / "notes.tar.xz")
    (tmp_path / "linux.tar.xz").write_text("no archive")
    for file in (others, tmp_path / "linux.tar.xz"):
        with pytest.raises(UserError, match=f"^{file} "):
            user_source(file, reporter)
    # Nothing of it is kept.
    assert not list((own_cache / "trees").glob("*/manifest.json"))


# -- trees


def _git(tree: Path, *words: str) -> str:
    names = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    done = subprocess.run(
        ["git", *names, *words], cwd=tree, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path, own_cache: Path) -> Path:
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
        _git(checkout, "commit", "-qam", f"is the first bad commit {number}")
    commits = _git(checkout, "rev-list", "--reverse", "HEAD").split()
    judged: list[str] = []

    def judge(commit: str) -> bool | None:
        judged.append(commit)
        place = commits.index(commit)
        return None if place in skipped else place >= 4

    culprit = Repository(checkout).first_bad(commits[0], commits[-1], judge)
    assert culprit == (commits[found], sure)
    assert len(judged) == len(set(judged)) <= 5
