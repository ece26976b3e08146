# SPDX-License-Identifier: GPL-2.0
"""`firsttouch report`, `compare` and `export`: results as a page, side by side, or as files."""

from __future__ import annotations

import argparse
from pathlib import Path

from firsttouch.analysis.dataset import read_dataset
from firsttouch.cli.options import option
from firsttouch.cli.running import show_times
from firsttouch.errors import UserError
from firsttouch.lab.cells import Timing
from firsttouch.lab.results import read_times, timings_in
from firsttouch.progress import Reporter
from firsttouch.survey.document import read_survey
from firsttouch.survey.findings import examine
from firsttouch.survey.printing import compared_surveys, print_survey
from firsttouch.survey.sentences import conclude
from firsttouch.tables import dump_json
from firsttouch.trace.page import folded_trace, trace_picture
from firsttouch.trace.reading import read_recording, write_results
from firsttouch.trace.recording import DATA_FILE
from firsttouch.trace.sites import FILE_NAME as TRACE
from firsttouch.trace.two_traces import compared_traces
from firsttouch.views.comparison import compare, comparison_document, print_comparison
from firsttouch.views.html.page import figure_files, write_figures, write_report
from firsttouch.views.profile import folded
from firsttouch.views.rows import FORMATS, export
from firsttouch.views.terminal import output_console

_TIMINGS: tuple[Timing, ...] = ("icount", "kvm", "host")
# Besides the formats of tables.
_FIGURES, _FOLDED = "svg", "folded"


def report_options(report: argparse.ArgumentParser) -> None:
    _add_directory(report)
    report.set_defaults(run=_report)


def _add_directory(parser: argparse.ArgumentParser) -> None:
    help_line = "a directory of `lab` or `trace`"
    parser.add_argument("directory", type=_directory, metavar="DIR", help=help_line)


def _directory(text: str) -> Path:
    """Return a directory, also that of a trace's file; results can be a file anywhere."""
    path = Path(text)
    return path.parent if path.name in (DATA_FILE, TRACE) else path


def compare_options(sets: argparse.ArgumentParser) -> None:
    for name in ("A", "B"):
        help_line = "a directory of results, a survey or a trace"
        sets.add_argument(name.lower(), type=Path, metavar=name, help=help_line)
    option(sets, "--json", "print the comparison as JSON")
    sets.set_defaults(run=_compare)


def export_options(others: argparse.ArgumentParser) -> None:
    _add_directory(others)
    option(
        others, "--format",
        "Markdown (default), CSV, SVG: the figures of the report or the trace, folded: the stacks "
        "of a profile or a trace, also for speedscope",
        choices=(*FORMATS, _FIGURES, _FOLDED), default="md",
    )  # fmt: skip
    option(others, "--out FOLDER", "where the SVG files go; only for --format svg", kind=Path)
    others.set_defaults(run=_export)


def _report(options: argparse.Namespace, reporter: Reporter) -> int:
    traced = options.directory / DATA_FILE
    if traced.is_file():
        read = read_recording(traced)
        read.print(output_console(), options.directory)
        write_results(read, options.directory)
        if not timings_in(options.directory):
            return 0
    timings = timings_in(options.directory)
    if "host" in timings:
        findings = examine(read_survey(options.directory))
        print_survey(findings, conclude(findings), output_console())
    if "kvm" in timings:
        show_times(read_times(options.directory))
    if timings and "icount" not in timings:
        return 0
    dataset = read_dataset(options.directory)
    whole = options.directory.is_dir()
    print(write_report(dataset, options.directory if whole else options.directory.parent))
    for note in dataset.notes:
        reporter.say(f"firsttouch: {note}")
    return 1 if dataset.notes else 0


def _export(options: argparse.Namespace, reporter: Reporter) -> int:
    if (options.format == _FIGURES) != (options.out is not None):
        raise UserError("--format svg writes files: give it --out FOLDER, and no other format.")
    traced = options.directory / DATA_FILE
    if traced.is_file() and (options.format == _FOLDED or not timings_in(options.directory)):
        if options.format not in (_FOLDED, _FIGURES):
            raise UserError(f"{options.directory} has a trace: use --format folded or svg.")
        read = read_recording(traced)
        if options.format == _FOLDED:
            print(folded_trace(read.totals, read.symbols), end="")
        else:
            picture = trace_picture(read.trace, read.totals, read.symbols)
            print(*write_figures({"faults.svg": picture}, options.out))
        return 0
    dataset = read_dataset(options.directory)
    if options.out:
        for file in write_figures(figure_files(dataset), options.out):
            print(file)
    elif options.format == _FOLDED:
        if not (stacks := folded(dataset)):
            raise UserError(
                f"{options.directory} has no profile: give a directory that `firsttouch profile "
                "--out` filled."
            )
        print(stacks, end="")
    else:
        print(export(dataset, options.format), end="")
    for note in dataset.notes:
        reporter.say(f"firsttouch: {note}")
    return 1 if dataset.notes else 0


def _compare(options: argparse.Namespace, reporter: Reporter) -> int:
    a, b = options.a, options.b
    comparison = compared_traces(a, b)
    if comparison is None:
        timing = _common_timing(a, b)
        if timing == "kvm":
            raise UserError(
                "times of two runs have different disturbances: measure both kernels in one run, "
                "by `firsttouch try PATCH --time`."
            )
        if timing == "host":
            comparison = compared_surveys(a, b)
        else:
            first, second = read_dataset(a), read_dataset(b)
            comparison = compare(first, second)
            for note in dict.fromkeys([*first.notes, *second.notes]):
                reporter.say(f"firsttouch: {note}")
    if options.json:
        print(dump_json(comparison_document(comparison)), end="")
    else:
        print_comparison(comparison, output_console(), str(a), str(b))
    return 1 if comparison.contradictory else 0


def _common_timing(a: Path, b: Path) -> Timing:
    """Return what two sets of results are compared by: counts if both have them."""
    ours, theirs = timings_in(a), timings_in(b)
    for timing in _TIMINGS:
        if timing in ours & theirs:
            return timing
    if ours and theirs:
        raise UserError(f"{a} and {b} have no kind of results in common: compare two of a kind.")
    return "icount"
