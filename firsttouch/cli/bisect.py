# SPDX-License-Identifier: GPL-2.0
"""`firsttouch try --bisect`: the first commit of a git tree that makes a count too large.

Counts are exact, so each commit is measured once and no statistics are needed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from firsttouch.analysis.changes import JUDGED
from firsttouch.analysis.dataset import make_dataset
from firsttouch.building.store import Entry
from firsttouch.catalog.arms import BASE
from firsttouch.catalog.contract import Contract
from firsttouch.cli.options import request_of
from firsttouch.errors import BuildError, HostError, UserError, nearest
from firsttouch.lab.plan import make_plan
from firsttouch.lab.run import release_of, run_lab
from firsttouch.processes import output
from firsttouch.progress import Reporter
from firsttouch.quantities import format_count
from firsttouch.views.rows import cell_name


def run_bisect(options: argparse.Namespace, contract: Contract, reporter: Reporter) -> int:
    """Print the first bad commit of ``GOOD..BAD``; return the exit status.

    A commit is bad if the metric of the cell that the options select is nearer to that of BAD
    than to that of GOOD. The store has what was measured: the same command resumes.
    """
    good, dots, bad = options.bisect.partition("..")
    if not (good and dots and bad):
        raise UserError(f"--bisect {options.bisect}: write GOOD..BAD, such as v6.12..HEAD.")
    if options.source is None:
        raise UserError("--bisect needs a kernel's git tree: use --source TREE.")
    repository, metric = Repository(options.source), options.metric
    good, bad = repository.commit(good), repository.commit(bad)
    between = repository.between(good, bad)
    request = replace(request_of(options), arms=(BASE,))
    first = replace(request, source=repository.tree(good, reporter))
    plan = make_plan(first, release_of(first).name, contract)
    if len(plan.cells) != 1:
        number = len(plan.cells)
        raise UserError(f"--bisect follows one cell, and {number} are selected: use --set, --size.")
    experiment = plan.catalog.experiments[plan.cells[0].experiment]
    name = cell_name(experiment, plan.cells[0].params)
    if metric not in (names := {*JUDGED, *(each.name for each in experiment.metrics)}):
        raise UserError(f"--metric {metric}: {experiment.name} has none; {nearest(metric, names)}")
    if options.dry_run:
        kernels = between.bit_length() + 1
        print(f"{metric} of {name}: {format_count(between)} commits, about {kernels} kernels.")
        return 0

    def value(commit: str) -> float:
        """Return the metric on the kernel of a commit; BuildError if that does not build."""
        tree = repository.tree(commit, reporter)
        of_commit = replace(request, source=tree, out=request.out / commit[:12])
        outcome = run_lab(of_commit, contract, reporter)
        for _, error in outcome.failures:
            raise error
        dataset = make_dataset(outcome.results, outcome.catalog)
        found = dataset.cases[0].value(BASE, metric) if dataset.cases else None
        if found is None:
            raise UserError(f"--metric {metric}: the cell has none: choose another.")
        return found

    before, since = value(good), value(bad)
    if before == since:
        raise UserError(
            f"{metric} is {format_count(before)} at GOOD and at BAD: give commits between which "
            "it changes."
        )

    def is_bad(commit: str) -> bool | None:
        try:
            found = value(commit)
        except BuildError as error:
            reporter.say(f"{repository.subject(commit)}: skipped: {error}")
            return None
        bad = abs(found - since) < abs(found - before)
        said = f"{metric} {format_count(found)}: {'bad' if bad else 'good'}"
        reporter.say(f"{repository.subject(commit)}: {said}")
        return bad

    culprit, sure = repository.first_bad(good, bad, is_bad)
    skipped = "" if sure else " or one of those before it that do not build"
    print(f"First bad commit: {repository.subject(culprit)}{skipped}")
    found = value(culprit)
    print(f"{metric} of {name}: {format_count(before)} before, {format_count(found)} since.")
    return 0


@dataclass(frozen=True)
class Repository:
    """A git repository, which is only read."""

    path: Path

    def _git(self, *words: str | Path) -> str:
        return output(["git", "-C", self.path, *words]).strip()

    def commit(self, name: str) -> str:
        try:
            return self._git(
                "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"
            )
        except HostError:
            raise UserError(
                f"{self.path} has no commit {name}: check --bisect and --source."
            ) from None

    def between(self, good: str, bad: str) -> int:
        """Return the number of commits after `good` up to `bad`."""
        try:
            self._git("merge-base", "--is-ancestor", good, bad)
        except HostError:
            raise UserError("--bisect: GOOD is no ancestor of BAD: exchange them?") from None
        return int(self._git("rev-list", "--count", f"{good}..{bad}"))

    def subject(self, commit: str) -> str:
        return self._git("show", "-s", "--format=%h %s", commit)

    def tree(self, commit: str, reporter: Reporter) -> Path:
        tree = self._git("rev-parse", f"{commit}^{{tree}}")
        if not self._git("ls-tree", tree, "arch/arm64/mm/fault.c"):
            raise UserError(f"{self.path} has no kernel at {commit[:12]}: give the kernel's tree.")

        def make(workplace: Path, product: Path) -> None:
            archive = workplace / "tree.tar"
            self._git("archive", "-o", archive, tree)
            output(["tar", "-xf", archive, "--no-same-owner", "-C", product])

        entry = Entry("trees", {"git tree": tree}, f"kernel tree of commit {commit[:12]}",
                      deep=False)  # fmt: skip
        return entry.obtain(make, reporter.say)

    def first_bad(
        self, good: str, bad: str, is_bad: Callable[[str], bool | None]
    ) -> tuple[str, bool]:
        """Return the first bad commit after `good`, and whether it is sure.

        It is not sure if commits before it were skipped, for which `is_bad` is None.
        """
        good_ones, skipped = [good], set[str]()
        while True:
            # Those first that leave the fewest.
            listed = self._git("rev-list", "--bisect-all", bad, "--not", *good_ones).splitlines()
            left = [line.split()[0] for line in listed]
            at = next((commit for commit in left if commit not in {bad, *skipped}), None)
            if at is None:
                return bad, len(left) == 1
            judged = is_bad(at)
            if judged is None:
                skipped.add(at)
            elif judged:
                bad = at
            else:
                good_ones.append(at)
