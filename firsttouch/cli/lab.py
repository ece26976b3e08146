# SPDX-License-Identifier: GPL-2.0
"""`firsttouch lab`: build, boot, measure and compare."""

from __future__ import annotations

import argparse
import contextlib
import shlex
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from firsttouch.analysis.dataset import Dataset, make_dataset
from firsttouch.build.kernels import kernel_of
from firsttouch.build.packages import known_package
from firsttouch.build.programs import ftbench_list
from firsttouch.build.sources import KernelSource
from firsttouch.catalog.arms import BASE, SHIPPED, load_arm
from firsttouch.catalog.collection import Catalog
from firsttouch.catalog.contract import Contract, parse_contract
from firsttouch.cli.listing import print_forecast, print_list
from firsttouch.cli.options import (
    Once,
    add_selection,
    fraction_of,
    request_of,
    where_of,
    workers_of,
)
from firsttouch.errors import FirsttouchError, GuestError, UserError
from firsttouch.files import check_writable, write_atomically
from firsttouch.finder.sites import Trace
from firsttouch.lab.cells import Cell
from firsttouch.lab.execution import guests_at_once
from firsttouch.lab.forecast import forecast
from firsttouch.lab.guests import build_parts, check_changes, make_jobs
from firsttouch.lab.layouts import parse_layouts
from firsttouch.lab.plan import HERE, SLURM, Plan, Request, make_plan
from firsttouch.lab.results import Result
from firsttouch.lab.run import Outcome, join_run, run_lab, source_of
from firsttouch.lab.run import release_of as release_of_request
from firsttouch.lab.traces import trace_of
from firsttouch.output.export import summary
from firsttouch.output.first_half import print_first_half
from firsttouch.output.html.page import write_report
from firsttouch.output.row_tables import print_dataset
from firsttouch.output.terminal import first_figure, output_console, print_answers
from firsttouch.places import HARDWARE
from firsttouch.progress import Reporter
from firsttouch.quantities import format_number_of
from firsttouch.survey.hardware import hardware_figures
from firsttouch.tables import dump_json
from firsttouch.trace.printing import print_programs
from firsttouch.vm.qemu import command

# Where the second half of the answer comes from.
_THEN = "The second half, what the changes save, follows when two kernels have been built."
_OTHER_HALF = "The second half, what the changes save: `firsttouch lab` builds two kernels for it."


def add_options(lab: argparse.ArgumentParser) -> None:
    """Add the options of `firsttouch lab`."""
    add_selection(lab, Path("out"))
    lab.add_argument(
        "--layouts",
        action=Once,
        metavar="N",
        help="run each cell in the first N layouts of kernel and program, or in layouts A-B, and "
        "show how its figures are distributed (default: as the experiment's file says, mostly 1)",
    )
    lab.add_argument(
        "--on",
        action=Once,
        default=HERE,
        metavar="WHERE",
        help=f"where guests run: {HERE} (default), {SLURM} or {SLURM}:PARTITION",
    )
    lab.add_argument(
        "--workers",
        action=Once,
        type=int,
        metavar="N",
        help="jobs of Slurm at once, a guest each (default: as many as CPUs are in service)",
    )
    lab.add_argument(
        "--audit",
        action=Once,
        metavar="PERCENT",
        help="run so many of the guests twice, such as 1%%, on different hosts if there are any",
    )
    only = add_form(lab)
    only.add_argument(
        "--join",
        action="store_true",
        help="run guests of a run with the same options, which has begun on another host with the "
        "same store; print and write nothing else",
    )
    only.add_argument(
        "--list", action="store_true", help="print the experiments, machines, arms and releases"
    )
    lab.set_defaults(run=_run, kept="finished cells are kept; run the same command again to resume")


def add_form(parser: argparse.ArgumentParser) -> argparse._MutuallyExclusiveGroup:
    """Add the options that say what is printed; return those of which one can be given."""
    parser.add_argument(
        "--quick",
        action="store_true",
        help="a first answer: smaller sizes and fewer cells",
    )
    parser.add_argument("--table", action="store_true", help="print every row")
    parser.add_argument("--json", action="store_true", help="print the answer as JSON instead")
    parser.add_argument(
        "--keep-vmlinux",
        action="store_true",
        help="build each kernel with debug information, too, and print the path of its vmlinux, "
        "for gdb and addr2line",
    )
    only = parser.add_mutually_exclusive_group()
    only.add_argument(
        "--dry-run",
        action="store_true",
        help="print what would be built and run, and an estimate of the time; run nothing",
    )
    only.add_argument(
        "--show-qemu",
        action="store_true",
        help="print the QEMU command of the one guest that the other options select, and write "
        "the files that it needs to DIR/qemu; run nothing",
    )
    return only


def _run(options: argparse.Namespace, reporter: Reporter) -> int:
    if options.list:
        return 0 if print_list(output_console()) else 2
    layouts = parse_layouts(options.layouts) if options.layouts is not None else ()
    request = replace(
        request_of(options, quick=options.quick, layouts=layouts),
        on=where_of(options.on),
        workers=workers_of(options.workers, options.on),
        audit=fraction_of("--audit", options.audit),
    )
    contract = parse_contract(ftbench_list(reporter))
    if options.join:
        return _join(request, contract, reporter)
    if options.dry_run:
        return print_plan(request, contract, reporter)
    if options.show_qemu:
        return show_qemu(request, contract, reporter)
    if request.quick and request.arms == (SHIPPED,) and not request.experiments:
        request = _first_half(request)
    elif (
        # Standard output must be one JSON object, or the rows alone.
        not (options.json or options.table)
        and _is_default(request)
        and _has_to_build(request, reporter)
    ):
        _print_first_half(request, contract, reporter)

    measured = measure(request, contract, reporter)
    _show(measured.dataset, measured.report, options, reporter)
    return print_problems(measured, request, reporter)


def _join(request: Request, contract: Contract, reporter: Reporter) -> int:
    """Run guests of a run that has begun; return the exit status."""
    if request.on != HERE:
        raise UserError("--join runs guests on this host: leave out --on.")
    ran = format_number_of(join_run(request, contract, reporter), "guests")
    reporter.say(f"This host ran {ran}; the run has none left.")
    return 0


def _show(dataset: Dataset, report: str, options: argparse.Namespace, reporter: Reporter) -> None:
    """Print what was measured, in the form that the options ask for."""
    programs = _programs(dataset)
    if options.json:
        print(dump_json(summary(dataset)), end="")
    elif options.table:
        print_dataset(dataset, output_console())
    elif programs:
        print_programs(programs, output_console())
        reporter.say("Every count: the same command with --table.")
    elif dataset.cases and {arm for case in dataset.cases for arm in case.arms} == {SHIPPED}:
        print_first_half(dataset, _OTHER_HALF, output_console())
        reporter.say(f"Report: {report}")
    elif dataset.cases:
        print_answers(dataset, report, output_console())
    if report and (options.json or options.table or programs):
        reporter.say(f"Report: {report}")


def _first_half(request: Request) -> Request:
    """Return the request for the first half of the answer, for which no kernel is built."""
    return replace(request, experiments=("populate", "read-fault"), arms=(SHIPPED,), quick=True)


def _is_default(request: Request) -> bool:
    """Tell whether `request` asks for the whole answer about a release of Debian's."""
    plain = Request(release=request.release, jobs=request.jobs, quick=request.quick,
                    out=request.out)  # fmt: skip
    return request == plain


def _has_to_build(request: Request, reporter: Reporter) -> bool:
    """Tell whether the store lacks the kernel that all others are compared with."""
    release = release_of_request(request, reporter)
    if not known_package(release.package):
        return True
    source = source_of(request, release, reporter)
    return kernel_of(load_arm(BASE).kernel, source).stored() is None


def _print_first_half(request: Request, contract: Contract, reporter: Reporter) -> None:
    """Measure Debian's own kernel while the source unpacks, and print what it costs.

    What fails here is said, and no reason to end: the whole answer does not need it.
    """
    reporter.say("First Debian's own kernel, which needs no build; then two kernels are built.")
    out = request.out / "first-half"
    try:
        source = source_of(request, release_of_request(request, reporter), reporter)
        # A daemon, so that Ctrl-C does not wait for it; the store resumes what is half done.
        unpacking = threading.Thread(target=_unpack, args=(source,), daemon=True)
        unpacking.start()
        outcome = run_lab(replace(_first_half(request), out=out), contract, reporter)
        print_first_half(make_dataset(outcome.results, outcome.catalog), _THEN, output_console())
        print_failures(outcome, out / "log", None)
        sys.stdout.flush()
        unpacking.join()
    except FirsttouchError as error:
        reporter.say(f"The first half of the answer is left out: {error}")


def _unpack(source: KernelSource) -> None:
    # The build that needs the tree reports what is wrong with it.
    with contextlib.suppress(FirsttouchError, OSError):
        source.tree()


def _programs(dataset: Dataset) -> dict[str, dict[str, Trace]]:
    """Return traces by program and arm; none if anything else was measured, too."""
    programs: dict[str, dict[str, Trace]] = {}
    for case in dataset.cases:
        for arm, measured in case.arms.items():
            trace = trace_of(measured.result)
            if trace is None:
                return {}
            programs.setdefault(str(case.params["program"]), {})[arm] = trace
    return programs


def print_plan(request: Request, contract: Contract, reporter: Reporter) -> int:
    """Print what a run of `request` would do; return the exit status."""
    release = release_of_request(request, reporter)
    plan = make_plan(request, release.name, contract)
    source = None
    if request.source or known_package(release.package):
        source = source_of(request, release, reporter)
        check_changes(plan, source)
    at_once = guests_at_once(request.jobs)
    print_forecast(plan, forecast(plan, release, source, at_once), output_console())
    return 0


def show_qemu(request: Request, contract: Contract, reporter: Reporter) -> int:
    """Print the QEMU command of the guest that `request` selects; return the exit status.

    Of a request that tries something, the guests of that count alone.
    """
    release = release_of_request(request, reporter)
    plan = make_plan(request, release.name, contract)
    tried = {arm.name for arm in request.tried} or set(plan.catalog.arms)
    plan = replace(
        plan,
        cells=tuple(cell for cell in plan.cells if cell.arm in tried),
        groups=tuple(group for group in plan.groups if group[0].arm in tried),
    )
    if len(plan.groups) > 1:
        raise UserError(_several_guests(plan))
    check_writable(request.out)
    out = request.out.resolve()
    source = source_of(request, release, reporter)
    (job,) = make_jobs(plan, build_parts(source, plan, out / "log", reporter))
    folder = out / "qemu" / job.cells[0].log_name.removesuffix(".log")
    folder.mkdir(parents=True, exist_ok=True)
    print(shlex.join(command(job.guest, folder, folder / "kernel.log")))
    reporter.say(f"The guest writes kernel.log and its results to {folder}.")
    return 0


def _several_guests(plan: Plan) -> str:
    """Return an error about a plan with several guests; it names the options that select one."""
    first = [group[0] for group in plan.groups]
    options = []
    for option, values in (
        ("--machine", {cell.machine for cell in first}),
        ("--experiment", {cell.experiment for cell in first}),
        ("--arm", {cell.arm for cell in first}),
    ):
        if len(values) > 1:
            options.append(option)
    names = {name for cell in first for name in cell.params}
    for name in sorted(names):
        if len({cell.params[name] for cell in first if name in cell.params}) > 1:
            options.append(f"--set {name}=...")
    return (
        f"--show-qemu prints the command of one guest, but {len(plan.groups)} are selected: "
        f"select one by {' '.join(options)}."
    )


@dataclass(frozen=True)
class Measured:
    """What a run measured: `report` is the path of its page, empty if nothing was measured."""

    outcome: Outcome
    dataset: Dataset
    report: str


def measure(request: Request, contract: Contract, reporter: Reporter) -> Measured:
    """Run `request`, and write summary.json and the report."""

    def tell(results: Sequence[Result], catalog: Catalog) -> None:
        figure = first_figure(make_dataset(results, catalog))
        if figure:
            reporter.say(figure)

    outcome = run_lab(request, contract, reporter, tell)
    dataset = make_dataset(outcome.results, outcome.catalog)
    write_atomically(request.out / "summary.json", dump_json(summary(dataset)))
    report = ""
    if dataset.cases:
        hardware = hardware_figures(HARDWARE, dataset.catalog)
        report = str(write_report(dataset, request.out, hardware))
    return Measured(outcome, dataset, report)


def print_problems(measured: Measured, request: Request, reporter: Reporter) -> int:
    """Print which files of the catalogue are wrong, and what failed; return the exit status."""
    for problem in measured.outcome.catalog.broken.values():
        reporter.say(f"firsttouch: {problem}")
    return print_failures(measured.outcome, request.out / "log", request.source)


def print_failures(outcome: Outcome, logs: Path, source: Path | None) -> int:
    """Print what failed on the kernel of `source`, None for Debian's; return the exit status."""
    for line in _failures(outcome, logs, source):
        print(line, file=sys.stderr)
    return 1 if outcome.failures else 0


def _failures(outcome: Outcome, logs: Path, source: Path | None) -> Iterator[str]:
    """Return lines about what failed: each reason once, its first cell, and the end of one log.

    The last line is the command that prints how QEMU was started for that cell.
    """
    reasons: dict[str, list[tuple[Cell, GuestError]]] = {}
    for cell, error in outcome.failures:
        reasons.setdefault(str(error), []).append((cell, error))
    for reason, failed in reasons.items():
        first, error = failed[0]
        cells = f" ({len(failed):,} cells failed for this reason)" if len(failed) > 1 else ""
        yield f"firsttouch: {first.title} failed: {reason.rstrip('.')}{cells}."
        # ftbench's message says more than the kernel's log.
        if "ftbench: " not in reason:
            yield from (f"    {line}" for line in error.detail)
        yield f"    The kernel's log: {logs / first.log_name}"
        arm = outcome.catalog.arms[first.arm]
        words = first.command(
            source.resolve() if source else None,
            arm if arm.tried else None,
            several=outcome.catalog.experiments[first.experiment].layouts > 1,
        )
        if not first.profile:
            yield f"    Its QEMU command: {words} --show-qemu"
