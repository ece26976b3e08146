# SPDX-License-Identifier: GPL-2.0
"""Commits of a user's kernel repository: git finds the first bad one, the store has their trees."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from firsttouch.building.store import Entry
from firsttouch.errors import HostError, UserError
from firsttouch.processes import output
from firsttouch.progress import Reporter

Verdict = Literal["good", "bad", "skip"]


class Repository:
    """A git repository, which is only read."""

    def __init__(self, path: Path) -> None:
        try:
            output(["git", "-C", path, "rev-parse", "--git-dir"])
        except HostError:
            raise UserError(
                f"{path} is no git repository: give --source a kernel's git tree."
            ) from None
        self.path = path

    def commit(self, name: str) -> str:
        """Return the hash of a commit; UserError if there is none of that name."""
        try:
            words = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"]
            return output(["git", "-C", self.path, *words]).strip()
        except HostError:
            raise UserError(f"{self.path} has no commit {name}: check --bisect.") from None

    def subject(self, commit: str) -> str:
        """Return the short hash and the subject of a commit."""
        return output(["git", "-C", self.path, "show", "-s", "--format=%h %s", commit]).strip()

    def tree(self, commit: str, reporter: Reporter) -> Path:
        """Return the files of a commit, which the store keeps."""
        tree = output(["git", "-C", self.path, "rev-parse", f"{commit}^{{tree}}"]).strip()

        def make(workplace: Path, product: Path) -> None:
            archive = workplace / "tree.tar"
            output(["git", "-C", self.path, "archive", "-o", archive, tree])
            output(["tar", "-xf", archive, "--no-same-owner", "-C", product])

        entry = Entry("trees", {"git tree": tree}, f"kernel tree of commit {commit[:12]}",
                      deep=False)  # fmt: skip
        return entry.obtain(make, reporter.say)

    def first_bad(self, good: str, bad: str, judge: Callable[[str], Verdict]) -> tuple[str, bool]:
        """Return the first bad commit after `good`, by git bisect, and whether it is sure.

        It is not sure if the commits before it had to be skipped. The bisection
        runs in a clone that shares the repository's objects.
        """
        with tempfile.TemporaryDirectory(prefix="firsttouch-bisect-") as scratch:
            clone = Path(scratch, "clone.git")
            output(["git", "clone", "-q", "--shared", "--bare", self.path.resolve(), clone])
            _bisect(clone, "start", "--no-checkout", bad, good)
            while True:
                bad = _git(clone, "rev-parse", "refs/bisect/bad")[0]
                form = "--format=%(objectname) %(refname:lstrip=2)"
                listed = _git(clone, "for-each-ref", form, "refs/bisect")
                judged = dict(line.split() for line in listed)
                good_ones = [at for at, name in judged.items() if name.startswith("good-")]
                left = _git(clone, "rev-list", bad, "--not", *good_ones)
                if not [at for at in left if at not in judged]:
                    # The others had to be skipped.
                    return bad, len(left) == 1
                at = _git(clone, "rev-parse", "BISECT_HEAD")[0]
                _bisect(clone, judge(at))


def _git(clone: Path, *words: str) -> list[str]:
    return output(["git", "-C", clone, *words]).split("\n")[:-1]


def _bisect(clone: Path, *words: str) -> None:
    done = subprocess.run(
        ["git", "-C", clone, "bisect", *words],
        capture_output=True, text=True, errors="replace", check=False,
    )  # fmt: skip
    # 2: only skipped commits are left.
    if done.returncode not in (0, 2):
        raise HostError("git bisect failed: see its message below.", done.stderr.splitlines()[-5:])
