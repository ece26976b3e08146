# SPDX-License-Identifier: GPL-2.0
"""`firsttouch try --bisect`: the first commit of a git tree that makes a count too large.

Counts are exact, so each commit is measured once and no statistics are needed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from firsttouch.analysis.changes import INSTRUCTIONS, JUDGED, units_of
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
from firsttouch.views.profile import changed_functions, functions_table
from firsttouch.views.rows import cell_name
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
    reporter: Reporter,
    *,
    dry_run: bool,
) -> int:
    """Print the first bad commit of ``GOOD..BAD`` and its functions; return the exit status.

    A commit is bad if `metric` of the cell that `request` selects is nearer to that of BAD
    than to that of GOOD. The store has what was measured: the same command resumes.
    """
    good, dots, bad = commits.partition("..")
    if not (good and dots and bad):
        raise UserError(f"--bisect {commits}: write GOOD..BAD, such as v6.12..HEAD.")
    if request.source is None:
        raise UserError("--bisect needs a kernel's git tree: use --source TREE.")
    repository = Repository(request.source)
    good, bad = repository.commit(good), repository.commit(bad)
    between = repository.between(good, bad)
    request = replace(request, arms=(BASE,), tried=())
    judge = _Judge(repository, request, contract, metric, reporter)
    first = replace(request, source=repository.tree(good, reporter))
    plan = make_plan(first, release_of(first).name, contract)
    if len(plan.cells) != 1:
        raise UserError(
            f"--bisect follows one cell, and {len(plan.cells)} are selected: select one by "
            "--experiment, --set and --size."
        )
    (cell,) = plan.cells
    experiment = plan.catalog.experiments[cell.experiment]
    if metric not in (names := {*JUDGED, *(each.name for each in experiment.metrics)}):
        raise UserError(f"--metric {metric}: {experiment.name} has none; {nearest(metric, names)}")
    if dry_run:
        print(
            f"{metric} of {cell_name(experiment, cell.params)}: {format_count(between)} commits, "
            f"about {between.bit_length() + 1} kernels."
        )
        return 0
    before, since = judge.value(good), judge.value(bad)
    if before == since:
        raise UserError(
            f"{metric} is {format_count(before)} at GOOD and at BAD: give commits between which "
            "it changes."
        )

    def is_bad(commit: str) -> bool | None:
        try:
            value = judge.value(commit)
        except BuildError as error:
            reporter.say(f"{repository.subject(commit)}: skipped: {error}")
            return None
        bad = abs(value - since) < abs(value - before)
        reporter.say(
            f"{repository.subject(commit)}: {metric} {format_count(value)}: "
            f"{'bad' if bad else 'good'}"
        )
        return bad

    culprit, sure = repository.first_bad(good, bad, is_bad)
    _print_culprit(judge, culprit, sure=sure)
    return 0


def _print_culprit(judge: _Judge, culprit: str, *, sure: bool) -> None:
    repository, console = judge.repository, output_console()
    if not sure:
        said = f"The first bad commit is {repository.subject(culprit)} or one of those before it"
        console.print(plain(f"{said} that do not build."), soft_wrap=True)
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
        if rows := changed_functions(profiles, units):
            title, sides = f"functions of {name}", ("before", "after")
            print_table(functions_table(title, sides, rows, unit), console)


class Repository:
    """A git repository, which is only read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._git("rev-parse", "--git-dir")
        except HostError:
            raise UserError(
                f"{path} is no git repository: give --source a kernel's git tree."
            ) from None

    def _git(self, *words: str | Path) -> str:
        return output(["git", "-C", self.path, *words]).strip()

    def commit(self, name: str) -> str:
        try:
            return self._git(
                "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"
            )
        except HostError:
            raise UserError(f"{self.path} has no commit {name}: check --bisect.") from None

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
        good_ones: list[str] = [good]
        skipped: set[str] = set()
        while True:
            # Those first that leave the fewest.
            listed = self._git("rev-list", "--bisect-all", bad, "--not", *good_ones).splitlines()
            left = [line.split()[0] for line in listed]
            untried = [commit for commit in left if commit not in {bad, *skipped}]
            if not untried:
                return bad, len(left) == 1
            at = untried[0]
            judged = is_bad(at)
            if judged is None:
                skipped.add(at)
            elif judged:
                bad = at
            else:
                good_ones.append(at)
