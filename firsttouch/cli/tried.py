# SPDX-License-Identifier: GPL-2.0
"""`firsttouch try`: what a patch, a configuration or a boot parameter changes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from firsttouch.analysis.changes import JUDGED, CellChange, Changes, changes
from firsttouch.analysis.dataset import Dataset, make_dataset
from firsttouch.analysis.figures import change_percent
from firsttouch.analysis.measurement import Case
from firsttouch.building.patches import read_fragment, read_patches
from firsttouch.building.programs import ftbench_list
from firsttouch.catalog.arms import (
    BASE,
    UNNAMED,
    Arm,
    Wanted,
    arm_names,
    load_setting,
    matrix_settings,
    tried_arms,
)
from firsttouch.catalog.contract import Contract, parse_contract
from firsttouch.cli.bisect import METRIC, run_bisect
from firsttouch.cli.count import add_program, programs_of, standard_input
from firsttouch.cli.lab import add_form
from firsttouch.cli.options import (
    add_limits,
    add_selection,
    by_release,
    check_time,
    limit_of,
    option,
    request_of,
)
from firsttouch.cli.running import measure, print_failures, print_plan, run_times
from firsttouch.errors import UserError, nearest
from firsttouch.lab.plan import COUNT, Request
from firsttouch.lab.run import release_of, run_lab
from firsttouch.progress import Reporter
from firsttouch.quantities import format_change
from firsttouch.tables import dump_json
from firsttouch.views.changes import changes_document, compared_arms, reply
from firsttouch.views.comparison import print_comparison
from firsttouch.views.html.page import flame_graphs, write_figures, write_report
from firsttouch.views.profile import function_tables
from firsttouch.views.rows import cell_name, print_dataset
from firsttouch.views.tables import print_table
from firsttouch.views.terminal import output_console

_EXAMPLES = """examples:
  firsttouch try 0001-mm-my-change.patch
  firsttouch try series/ --experiment populate      the patches of a directory, in order
  firsttouch try v3.mbox.gz                         a series as a mailbox
  firsttouch try https://lore.kernel.org/r/20260101.1-a@example.org    fetched, by b4 if installed
  git -C ~/linux diff | firsttouch try -            what you have not committed yet
  firsttouch try --config memcg-off.config          lines such as # CONFIG_MEMCG is not set
  firsttouch try --arm v1 v1.patch --arm v2 v2.patch --boot thp_anon=64K:always
  firsttouch try fix.patch --matrix --quick         who else gains or loses: KPTI off, 4 CPUs, ...
  firsttouch try fix.patch -- ./mybench             what a patch does to a program of arm64
  firsttouch try --bisect v6.12..HEAD --source ~/linux --experiment read-fault
"""


def add_options(tried: argparse.ArgumentParser) -> None:
    tried.description = (
        "Build stock and stock with your change, run the same experiments on both, and print "
        "the difference per fault or operation, by function."
    )
    tried.epilog = _EXAMPLES
    tried.set_defaults(wanted=[])
    tried.add_argument(
        "patches",
        nargs="*",
        metavar="PATCH",
        action=_ArmOption,
        help="a patch, a mail or a mailbox, also compressed by gzip or xz; a directory with a "
        "series (*.patch); a message ID or URL of lore.kernel.org; - for standard input",
    )
    tried.add_argument(
        "--arm",
        nargs="+",
        metavar=("NAME", "PATCH"),
        action=_ArmOption,
        dest="named",
        help=f"start an arm to which later arguments belong (default: one arm, {UNNAMED})",
    )
    tried.add_argument(
        "--config",
        metavar="FRAGMENT",
        action=_ArmOption,
        dest="fragments",
        help="a file with lines such as CONFIG_X=y for the configuration; may be repeated",
    )
    tried.add_argument(
        "--boot", metavar="WORDS", action=_ArmOption, help="words for the kernel's command line"
    )
    option(
        tried, "--bisect GOOD..BAD",
        "find the first commit of the git tree --source that changes --metric of one cell",
    )  # fmt: skip
    option(tried, "--metric M", "the metric of --bisect (default %(default)s)", default=METRIC)
    add_selection(tried, "out/try", arms=False)
    option(
        tried, "--matrix",
        "also run all cells in each setting of settings/ (with --quick: in the quick ones)",
    )  # fmt: skip
    option(
        tried, "--baseline NAME",
        "compare with this arm, such as the first patch of a series (default: %(default)s)",
        default=BASE,
    )  # fmt: skip
    option(tried, "--reply", "print the answer as a reply to the patch's thread, in 72 columns")
    add_limits(tried)
    add_form(tried)
    add_program(tried)
    tried.set_defaults(run=by_release(_run))


class _ArmOption(argparse.Action):
    """Gives a patch, a fragment or boot words to the arm that the last --arm has begun."""

    def __call__(
        self,
        _parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[str] | None,
        _option: str | None = None,
    ) -> None:
        words = [values] if isinstance(values, str) else list(values or [])
        # A list of its own, because the default belongs to the parser.
        wanted: list[Wanted] = list(namespace.wanted)
        if self.dest == "named":
            wanted.append(Wanted(words.pop(0)))
        elif words and not wanted:
            wanted.append(Wanted(UNNAMED))
        if self.dest in ("named", "patches") and words:
            wanted[-1].patches += map(Path, words)
        elif self.dest == "fragments":
            wanted[-1].fragments += map(Path, words)
        elif self.dest == "boot":
            wanted[-1].boot += words
        namespace.wanted = wanted


def _run(options: argparse.Namespace, reporter: Reporter) -> int:
    check_time(options)
    if options.bisect:
        if options.wanted or options.fail_if or options.baseline != BASE:
            raise UserError(
                "--bisect takes commits as they are: drop patches, --config, --boot, --baseline "
                "and --fail-if."
            )
        return run_bisect(
            request_of(options, quick=options.quick),
            parse_contract(ftbench_list(reporter)),
            options.bisect,
            options.metric,
            reporter,
            dry_run=options.dry_run,
        )
    if options.metric != METRIC:
        raise UserError("--metric belongs to --bisect: give it GOOD..BAD.")
    for this, other in (("json", "reply"), ("matrix", "setting")):
        if getattr(options, this) and getattr(options, other):
            raise UserError(f"--{this} and --{other} exclude each other: give one of them.")
    # A patch may be read from standard input, once.
    piped = any(Path("-") in wanted.patches for wanted in options.wanted)
    options.wanted = [_plain(arm) for arm in options.wanted]
    arms = tried_arms(options.wanted)
    if not arms:
        raise UserError("nothing to try: give a PATCH, --config FRAGMENT or --boot WORDS.")
    names = [arm.name for arm in arms]
    bases = {*arm_names(), *(names if len(names) > 1 else ())}
    if options.baseline not in bases:
        near = nearest(options.baseline, bases)
        raise UserError(f"--baseline {options.baseline}: no other arm has this name; {near}")
    if options.time and options.baseline != BASE:
        raise UserError(f"--time compares with {BASE}: leave out --baseline.")
    request = request_of(options, quick=options.quick, tried=arms)
    request = replace(request, baseline=options.baseline)
    if getattr(options, "command", ()):
        program, *others = programs_of(options, None if piped else standard_input())
        if others:
            raise UserError("--root is given twice: `try` compares kernels, `count` roots, too.")
        request = replace(request, experiments=(COUNT,), program=program)
    if options.matrix:
        release = release_of(request).name
        request = replace(request, around=matrix_settings(release, quick=options.quick))
    limits = _limits(options)
    contract = parse_contract(ftbench_list(reporter))
    if options.time:
        return run_times(options, request, contract, reporter)
    if options.dry_run:
        return print_plan(request, contract, reporter)
    measured = measure(request, contract, reporter)
    tried = changes(measured.dataset, request.baseline)
    dataset = measured.dataset
    arm_of = dataset.catalog.arms
    profiled = [
        profile(request, contract, arm_of[changed.base], arm_of[changed.arm], side, cell, reporter)
        for changed in tried
        for side, cell in changed.examples().items()
    ]
    cases = {
        changed.arm: [case for each in profiled if each.arm == changed.arm for case in each.cases]
        for changed in tried
    }
    if measured.report:
        write_report(dataset, request.out, base=request.baseline, profiled=cases)
    if options.json:
        print(dump_json(changes_document(tried, cases)), end="")
    elif options.reply:
        print(reply(dataset, tried, cases, request.argv), end="")
    else:
        console = output_console()
        if options.table:
            print_dataset(dataset, console)
        for changed in tried:
            print_comparison(compared_arms(changed, len(tried)), console)
            for each in profiled:
                if each.arm == changed.arm:
                    print_profiled(each, console)
        console.print(f"Report: {measured.report}", soft_wrap=True)
    exceeded = [
        said for changed in tried for limit in limits for said in _exceeding(changed, *limit)
    ]
    for said in exceeded:
        print(f"firsttouch: {said}", file=sys.stderr)
    status = max((*(each.status for each in profiled), int(bool(exceeded))), default=0)
    return print_failures(measured.outcome, request.out / "log", request.source) | status


def _limits(options: argparse.Namespace) -> list[tuple[str, float]]:
    limits = [limit_of(text) for text in options.fail_if]
    for name, _ in limits:
        if name not in JUDGED:
            raise UserError(f"--fail-if {name}: no such count; {nearest(name, JUDGED)}")
    return limits


def _exceeding(changed: Changes, name: str, percent: float) -> Iterator[str]:
    """Yield a sentence for each cell in which a count grows by more than a limit."""
    for cell in changed.cells:
        if name in cell.figures:
            change = change_percent(*(figure.median for figure in cell.figures[name]))
            if change is not None and change > percent:
                where = cell_name(cell.case.experiment, cell.case.params)
                yield f"{name} {format_change(change)}, more than +{percent:g} % ({where})."


def _plain(wanted: Wanted) -> Wanted:
    """Return `wanted` with plain files in place of mails, pipes and packed files."""
    return Wanted(
        wanted.name,
        list(read_patches(wanted.patches)),
        [read_fragment(file) for file in wanted.fragments],
        wanted.boot,
    )


@dataclass(frozen=True)
class Profiled:
    """A cell that was run again with counts by function, on `base` and on `arm`."""

    arm: str
    base: str
    dataset: Dataset
    folder: Path
    status: int

    @property
    def cases(self) -> Sequence[Case]:
        return self.dataset.cases


def profile(
    request: Request,
    contract: Contract,
    base: Arm,
    arm: Arm,
    side: str,
    cell: CellChange,
    reporter: Reporter,
) -> Profiled:
    size = cell.case.params.get("size")
    folder = request.out / "functions" / arm.name / side
    request = replace(
        request,
        machines=(cell.case.platform.machine,),
        experiments=(cell.case.experiment.name,),
        tried=(base, arm) if base.tried else (arm,),
        baseline=base.name,
        around=(load_setting(cell.case.platform.setting),),
        size=int(size) if size else None,
        settings={
            name: (str(value),) for name, value in cell.case.params.items() if name != "size"
        },
        profile=True,
        out=folder,
    )
    outcome = run_lab(request, contract, reporter)
    status = print_failures(outcome, folder / "log", request.source)
    results = [result for result in outcome.results if result.cell.arm in (base.name, arm.name)]
    dataset = make_dataset(results, outcome.catalog)
    return Profiled(arm.name, base.name, dataset, folder, status)


def print_profiled(each: Profiled, console: Console) -> None:
    for table in function_tables(each.cases, each.base, each.arm):
        print_table(table, console)
    for file in write_figures(flame_graphs(each.dataset), each.folder):
        console.print(f"Flame graph: {file}", soft_wrap=True)
