# SPDX-License-Identifier: GPL-2.0
"""`firsttouch try --bisect`: a git tree of 20 commits, one of which adds instructions."""

from collections.abc import Callable
from pathlib import Path

import pytest

from firsttouch.cli.main import main
from firsttouch.vm.guest import Guest
from tests.lab.conftest import git

pytestmark = pytest.mark.long

_CULPRIT = 13
_CELL = ("--experiment", "populate", "--set", "by=store", "--set", "page=4k", "--size", "8M")


@pytest.fixture
def history(fake_linux: Path) -> Path:
    git(fake_linux, "init", "-q")
    memory = fake_linux / "mm/memory.c"
    for number in range(1, 21):
        added = "\tisb();\n" if number == _CULPRIT else f"/* commit {number} */\n"
        memory.write_text(memory.read_text() + added)
        git(fake_linux, "add", "-A")
        git(fake_linux, "commit", "-q", "-m", f"mm: change {number}")
    return fake_linux


@pytest.fixture
def bisect(
    ran: list[Guest], history: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    def run(commits: str, *arguments: str, status: int = 0) -> str:
        capsys.readouterr()
        words = ["try", "--bisect", commits, *arguments, "--source", str(history), *_CELL,
                 "--out", str(tmp_path / "out")]  # fmt: skip
        assert main(words) == status
        printed = capsys.readouterr()
        return printed.err if status else printed.out

    return run


def test_the_first_commit_that_adds_instructions_is_found(
    bisect: Callable[..., str], history: Path, ran: list[Guest]
) -> None:
    before = git(history, "status", "--porcelain", "-b"), git(history, "for-each-ref")
    printed = bisect("HEAD~19..HEAD")
    first, counts = printed.splitlines()
    short = git(history, "rev-parse", "--short", f"HEAD~{20 - _CULPRIT}")
    assert first == f"First bad commit: {short} mm: change {_CULPRIT}"
    assert counts.endswith("populate store 4k 8 MiB: 5,120,000 before, 5,140,480 since.")
    # Two ends, and at most five steps.
    assert len(ran) <= 7
    # The repository is as it was, and the same command runs nothing again.
    assert (git(history, "status", "--porcelain", "-b"), git(history, "for-each-ref")) == before
    number = len(ran)
    assert bisect("HEAD~19..HEAD") == printed
    assert len(ran) == number


def test_what_cannot_be_bisected_is_refused(bisect: Callable[..., str], history: Path) -> None:
    git(history, "rm", "-q", "-r", "--cached", "arch")
    git(history, "commit", "-q", "-m", "no kernel")
    assert f"{history} has no kernel at " in bisect("HEAD..HEAD", status=2)
    git(history, "reset", "-q", "HEAD~")
    assert "has no commit nowhere" in bisect("nowhere..HEAD", status=2)
    assert "is 5,140,480 at GOOD and at BAD: give commits" in bisect("HEAD~3..HEAD", status=2)
    assert "did you mean 'page_faults'?" in bisect(
        "HEAD~19..HEAD", "--metric", "page_fault", status=2
    )
    assert "GOOD is no ancestor of BAD" in bisect("HEAD..HEAD~3", status=2)


def test_a_dry_run_builds_nothing(bisect: Callable[..., str], ran: list[Guest]) -> None:
    assert bisect("HEAD~19..HEAD", "--dry-run") == (
        "instructions_kernel of populate store 4k 8 MiB: 19 commits, about 6 kernels.\n"
    )
    assert not ran


def test_a_count_that_falls_is_found_too(bisect: Callable[..., str], history: Path) -> None:
    memory = history / "mm/memory.c"
    memory.write_text(memory.read_text().replace("isb();", "nop();"))
    git(history, "commit", "-q", "-a", "-m", "mm: faster again")
    git(history, "commit", "-q", "--allow-empty", "-m", "mm: the same")
    assert "mm: faster again\n" in bisect("HEAD~4..HEAD")


def test_only_one_cell_is_followed(bisect: Callable[..., str]) -> None:
    assert "--bisect follows one cell, and 8 are selected" in bisect(
        "HEAD~19..HEAD", "--set", "page=2m", "--set", "by=ldadd", "--set", "by=swp",
        "--set", "by=cas", status=2,
    )  # fmt: skip
