# SPDX-License-Identifier: GPL-2.0
"""`firsttouch try --bisect`: the first commit of a git tree that makes a count too large.

Counts are exact, so each commit is measured once and no statistics are needed. git chooses the
commits, the store has their trees.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from firsttouch.analysis.changes import INSTRUCTIONS, units_of
from firsttouch.analysis.dataset import make_dataset
from firsttouch.analysis.measurement import Case
from firsttouch.analysis.profile import profiles_of
from firsttouch.building.store import Entry
from firsttouch.catalog.arms import BASE
from firsttouch.catalog.contract import Contract
from firsttouch.errors import BuildError, FirsttouchError, HostError, UserError, nearest
from firsttouch.lab.plan import Request, make_plan
from firsttouch.lab.run import release_of, run_lab
from firsttouch.processes import output
from firsttouch.progress import Reporter
from firsttouch.quantities import format_count
from firsttouch.views.names import cell_name
from firsttouch.views.profile import changed_functions, functions_table
from firsttouch.views.tables import print_table
from firsttouch.views.terminal import output_console, plain

METRIC = INSTRUCTIONS


@dataclass(frozen=True)
class _Judge:
    """Measures commits by one metric of one cell, each once: `cases` has what it measured."""

    repository: Repository
    request: Request
    contract: Contract
    metric: str
    reporter: Reporter
    cases: dict[tuple[str, bool], Case] = field(default_factory=dict)

    def case(self, commit: str, *, profile: bool = False) -> Case:
        """Return the cell on the kernel of a commit; BuildError if that does not build."""
        if (commit, profile) in self.cases:
            return self.cases[commit, profile]
        tree = self.repository.tree(commit, self.reporter)
        request = replace(
            self.request, source=tree, profile=profile, out=self.request.out / commit[:12]
        )
        outcome = run_lab(request, self.contract, self.reporter)
        for _, error in outcome.failures:
            raise error
        (case,) = make_dataset(outcome.results, outcome.catalog).cases
        self.cases[commit, profile] = case
        return case

    def value(self, commit: str) -> float:
        case = self.case(commit)
        value = case.value(BASE, self.metric)
        if value is None:
            metrics = list(case.arms[BASE].metrics)
            raise UserError(f"--metric {self.metric}: the cell has none; "
                            f"{nearest(self.metric, metrics)}")  # fmt: skip
        return value


def run_bisect(
    request: Request,
    contract: Contract,
    commits: str,
    metric: str,
    limit: float | None,
    reporter: Reporter,
) -> int:
    """Print the first bad commit of ``GOOD..BAD`` and its functions; return the exit status.

    A commit is bad if `metric` of the cell that `request` selects is beyond
    `limit`, by default halfway between those of GOOD and BAD. What was measured
    is in the store, so the same command resumes.
    """
    good, dots, bad = commits.partition("..")
    if not (good and dots and bad):
        raise UserError(f"--bisect {commits}: write GOOD..BAD, such as v6.12..HEAD.")
    if request.source is None:
        raise UserError("--bisect needs a kernel's git tree: use --source TREE.")
    repository = Repository(request.source)
    good, bad = repository.commit(good), repository.commit(bad)
    request = replace(request, arms=(BASE,), tried=())
    judge = _Judge(repository, request, contract, metric, reporter)
    first = replace(request, source=repository.tree(good, reporter))
    plan = make_plan(first, release_of(first, reporter).name, contract)
    if len(plan.cells) != 1:
        raise UserError(
            f"--bisect follows one cell, and {len(plan.cells)} are selected: select one by "
            "--experiment, --set and --size."
        )
    ends = judge.value(good), judge.value(bad)
    if limit is None:
        limit = sum(ends) / 2
    # A count that falls may be what is looked for, too.
    grows = ends[1] > ends[0]
    if not (ends[0] <= limit < ends[1] if grows else ends[1] < limit <= ends[0]):
        raise UserError(
            f"{metric} is {format_count(ends[0])} at GOOD and {format_count(ends[1])} at BAD: "
            "give commits between which it changes, and a --limit between these two."
        )

    def verdict(commit: str) -> Verdict:
        try:
            value = judge.value(commit)
        except BuildError as error:
            reporter.say(f"{repository.subject(commit)}: skipped: {error}")
            return "skip"
        judgement: Verdict = "bad" if (value > limit if grows else value < limit) else "good"
        reporter.say(f"{repository.subject(commit)}: {metric} {format_count(value)}: {judgement}")
        return judgement

    culprit, sure = repository.first_bad(good, bad, verdict)
    _print_culprit(judge, culprit, sure=sure)
    return 0


def _print_culprit(judge: _Judge, culprit: str, *, sure: bool) -> None:
    repository, console = judge.repository, output_console()
    if not sure:
        console.print(plain(
            f"One of the commits before {repository.subject(culprit)}, which do not build, or "
            "itself, is the first bad commit."
        ), soft_wrap=True)  # fmt: skip
        return
    parent = repository.commit(f"{culprit}^")
    try:
        before = f"{format_count(judge.value(parent))} before, "
        profiled = {
            name: judge.case(commit, profile=True)
            for name, commit in (("before", parent), ("after", culprit))
        }
    except FirsttouchError:
        # The parent may not build.
        before, profiled = "", {}
    console.print(plain(f"First bad commit: {repository.subject(culprit)}"), soft_wrap=True)
    case = judge.case(culprit)
    name = cell_name(case.experiment, case.params)
    value = format_count(judge.value(culprit))
    console.print(plain(f"{judge.metric} of {name}: {before}{value} since."), soft_wrap=True)
    if profiled:
        profiles = {side: profiles_of(each)[BASE] for side, each in profiled.items()}
        unit, units = units_of(profiled["before"])
        rows = changed_functions(profiles, units)
        if not rows:
            console.print("No function executes more instructions, or fewer.")
        else:
            title, sides = f"functions of {name}", ("before", "after")
            print_table(functions_table(title, sides, rows, unit), console)


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
        try:
            words = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"]
            return output(["git", "-C", self.path, *words]).strip()
        except HostError:
            raise UserError(f"{self.path} has no commit {name}: check --bisect.") from None

    def subject(self, commit: str) -> str:
        return output(["git", "-C", self.path, "show", "-s", "--format=%h %s", commit]).strip()

    def tree(self, commit: str, reporter: Reporter) -> Path:
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
