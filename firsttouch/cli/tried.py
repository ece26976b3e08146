# SPDX-License-Identifier: GPL-2.0
"""`firsttouch try`: what a patch, a configuration or a boot parameter changes."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from firsttouch.analysis.changes import INSTRUCTIONS, JUDGED, changes
from firsttouch.analysis.measurement import Case
from firsttouch.building.patches import read_fragment, read_patches
from firsttouch.building.programs import ftbench_list
from firsttouch.catalog.arms import Arm, Wanted, load_setting, matrix_settings, tried_arms
from firsttouch.catalog.contract import parse_contract
from firsttouch.cli import lab
from firsttouch.cli.bisect import run_bisect
from firsttouch.cli.count import PROGRAM, programs_of
from firsttouch.cli.options import (
    FORM,
    LIMITS,
    SELECTION,
    by_release,
    check_time,
    declare,
    exclude,
    request_of,
)
from firsttouch.errors import UserError, nearest
from firsttouch.lab.plan import COUNT, NO, PROCESSES, Request
from firsttouch.lab.run import release_of, run_lab
from firsttouch.progress import Reporter
from firsttouch.tables import dump_json
from firsttouch.views.changes import changes_document, reply
from firsttouch.views.html.page import write_report
from firsttouch.views.rows import cell_name, print_dataset
from firsttouch.views.terminal import output_console

_EXAMPLES = """examples:
  firsttouch try 0001-mm-my-change.patch
  firsttouch try series/ --experiment populate     a directory or a mailbox
  firsttouch try https://lore.kernel.org/r/20260101.1-a@example.org
  git -C ~/linux diff | firsttouch try -           what is not committed yet
  firsttouch try --config memcg-off.config         # CONFIG_MEMCG is not set
  firsttouch try --arm v1 v1.patch --arm v2 v2.patch --boot thp_anon=64K:always
  firsttouch try fix.patch --matrix --quick        who else gains or loses
  firsttouch try fix.patch -- ./mybench            a program of arm64
  firsttouch try --bisect v6.12..HEAD --source ~/linux --experiment read-fault
"""
# The name of an arm that was given none.
_UNNAMED = "tried"
_OPTIONS = f"""{SELECTION}
--bisect GOOD..BAD  find the first commit of the git tree --source that changes --metric of one cell
--metric M          the metric of --bisect (default {INSTRUCTIONS})
--matrix            also run all cells in each setting of settings/ (with --quick: in the quick
                    ones)
--reply             print the answer as a reply to the patch's thread, in 72 columns
--out DIR           output directory (default out/try)
"""


def try_options(tried: argparse.ArgumentParser) -> None:
    tried.description = (
        "Build stock and stock with your change, run the same experiments on both, and print "
        "the difference per fault or operation, by function."
    )
    tried.epilog = _EXAMPLES
    tried.set_defaults(wanted=[])
    patch = (
        "a patch, a mail or a mailbox, also compressed by gzip; a directory with a series "
        "(*.patch); a message ID or URL of lore.kernel.org; - for standard input"
    )
    arm = f"start an arm to which later arguments belong (default: one arm, {_UNNAMED})"
    config = "a file with lines such as CONFIG_X=y for the configuration; may be repeated"
    boot = "words for the kernel's command line"
    names = ("NAME", "PATCH")
    tried.add_argument("patches", nargs="*", metavar="PATCH", action=_ArmOption, help=patch)
    tried.add_argument("--arm", nargs="+", metavar=names, action=_ArmOption, help=arm)
    tried.add_argument("--config", metavar="FRAGMENT", action=_ArmOption, help=config)
    tried.add_argument("--boot", metavar="WORDS", action=_ArmOption, help=boot)
    declare(tried, _OPTIONS + LIMITS + FORM + PROGRAM, by_release(_run), lab.RESUMED)


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
        if self.dest == "arm":
            wanted.append(Wanted(words.pop(0)))
        elif words and not wanted:
            wanted.append(Wanted(_UNNAMED))
        if self.dest in ("arm", "patches") and words:
            wanted[-1].patches += map(Path, words)
        elif self.dest == "config":
            wanted[-1].fragments += map(Path, words)
        elif self.dest == "boot":
            wanted[-1].boot += words
        namespace.wanted = wanted


def _run(options: argparse.Namespace, reporter: Reporter) -> int:
    check_time(options)
    if options.command and (options.bisect or options.experiment):
        raise UserError("a command is an experiment itself: drop --bisect and --experiment.")
    if options.bisect:
        if options.wanted or options.fail_if:
            raise UserError("--bisect takes commits as they are: drop patches and --fail-if.")
        return run_bisect(options, parse_contract(ftbench_list(reporter)), reporter)
    if options.metric != INSTRUCTIONS:
        raise UserError("--metric belongs to --bisect: give it GOOD..BAD.")
    exclude(options, "json", "reply")
    exclude(options, "matrix", "setting")
    request = _request(options, reporter)
    contract = parse_contract(ftbench_list(reporter))
    if options.time:
        return lab.run_times(options, request, contract, reporter)
    if options.dry_run:
        return lab.print_plan(request, contract, reporter)
    outcome, dataset, report = lab.measure(request, contract, reporter)
    tried = changes(dataset)
    status = 0
    for changed in tried:
        for side, cell in changed.examples().items():
            again = example(request, dataset.catalog.arms[changed.arm], side, cell.case)
            profiled = run_lab(again, contract, reporter)
            status |= lab.print_failures(profiled, again)
    cases = lab.functions_of(dataset, tried, request.out)
    if report:
        write_report(dataset, request.out, cases)
    if options.json:
        print(dump_json(changes_document(tried, cases)), end="")
    elif options.reply:
        print(reply(dataset, tried, cases, request.argv), end="")
    else:
        if options.table:
            print_dataset(dataset, output_console())
        lab.print_tried(tried, cases)
        if report:
            print(f"Report: {report}")
    sides = [
        (
            cell_name(cell.case.experiment, cell.case.params),
            {name: base.median for name, (base, _) in cell.figures.items()},
            {name: value.median for name, (_, value) in cell.figures.items()},
        )
        for changed in tried
        for cell in changed.cells
    ]
    status |= lab.print_exceeded(options.fail_if, sides)
    return lab.print_failures(outcome, request) | lab.say_notes(dataset.notes, reporter) | status


def _request(options: argparse.Namespace, reporter: Reporter) -> Request:
    for name, _ in options.fail_if:
        if name not in JUDGED:
            raise UserError(f"--fail-if {name}: no such count; {nearest(name, JUDGED)}")
    # A patch may be read from standard input, once.
    piped = any(Path("-") in arm.patches for arm in options.wanted)
    # Plain files instead of mails, pipes and packed files.
    options.wanted = [
        Wanted(arm.name, list(read_patches(arm.patches)), list(map(read_fragment, arm.fragments)),
               arm.boot)
        for arm in options.wanted
    ]  # fmt: skip
    arms = tried_arms(options.wanted)
    if not arms:
        raise UserError("nothing to try: give a PATCH, --config FRAGMENT or --boot WORDS.")
    request = request_of(options, tried=arms)
    if options.command:
        program, *others = programs_of(options, reporter, reads=not piped)
        if others:
            raise UserError("--root is given twice: `try` compares kernels, `count` roots, too.")
        settings = {PROCESSES: (NO,)}
        request = replace(request, experiments=(COUNT,), settings=settings, program=program)
    if options.matrix:
        release = release_of(request).name
        request = replace(request, around=matrix_settings(release, quick=options.quick))
    return request


def example(request: Request, arm: Arm, side: str, case: Case) -> Request:
    """Return the request for a case with counts by function, on stock and on `arm`."""
    size = case.params.get("size")
    return replace(
        request,
        machines=(case.platform.machine,),
        experiments=(case.experiment.name,),
        tried=(arm,),
        around=(load_setting(case.platform.setting),),
        size=int(size) if size else None,
        settings={name: (str(value),) for name, value in case.params.items() if name != "size"},
        profile=True,
        out=request.out / lab.FUNCTIONS / arm.name / side,
    )
