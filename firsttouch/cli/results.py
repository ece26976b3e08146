# SPDX-License-Identifier: GPL-2.0
"""`firsttouch trace` and `survey` of this host; `report`, `compare` and `export` of any results."""

from __future__ import annotations

import argparse
import functools
import os
import signal
from dataclasses import replace
from pathlib import Path

from firsttouch.analysis.changes import changes
from firsttouch.analysis.dataset import read_dataset
from firsttouch.analysis.figures import read_times
from firsttouch.building.store import locked
from firsttouch.cli.lab import functions_of, print_tried, say_notes, show_times
from firsttouch.cli.options import declare, exclude, settings_of
from firsttouch.errors import UserError
from firsttouch.files import check_writable
from firsttouch.lab.results import FILE_NAME, timings_in
from firsttouch.progress import Reporter
from firsttouch.survey.document import read_survey, write_survey
from firsttouch.survey.findings import examine
from firsttouch.survey.printing import compared_surveys, print_survey
from firsttouch.survey.run import price, provide_prices, survey_host
from firsttouch.survey.sentences import conclude
from firsttouch.survey.tasks import selected
from firsttouch.tables import dump_json
from firsttouch.trace.advice import predicted_and_measured, remedy_to_try, with_remedy
from firsttouch.trace.page import folded_trace, trace_picture
from firsttouch.trace.reading import Reading, read_recording, write_results
from firsttouch.trace.recording import DATA_FILE, Target, record, root_of
from firsttouch.trace.sentences import compared_traces, print_trace
from firsttouch.trace.sites import FILE_NAME as TRACE
from firsttouch.trace.sites import read_trace, read_trace_of
from firsttouch.views.answers import print_answers
from firsttouch.views.comparison import compare, comparison_document, print_comparison
from firsttouch.views.html.page import figure_files, write_figures, write_report
from firsttouch.views.profile import folded
from firsttouch.views.rows import FORMATS, export, print_dataset
from firsttouch.views.terminal import output_console

_SURVEY = """
--seconds 5-3600      duration; a longer one is more precise (default 20)
--experiment E...     populate, read-fault or set-conflict (default: all)
--set PARAM=VALUE...  only the cells with this value of a parameter, such as page=2m
--out DIR             output directory (default out)
"""
_TRACE = """
--out DIR          where trace.json, trace.html and trace.data go (default out)
--json             print trace.json on standard output; what the command prints goes to standard
                   error
--no-call-chains   record less of each fault: no flame graph, and fewer faults lost
--no-survey        skip the three-second measurement of fault costs, made without a survey
--pid N            trace a running process, with all its threads
--seconds N        with --pid: how long (default: until it ends, or Ctrl-C)
--try N            run the command of the trace in --out with its remedy N, an environment
                   variable, and print the predicted and the measured faults
COMMAND...         a command with arguments
"""
_REPORT = "DIR  a directory of `lab` or `trace`, or its file results.jsonl, .gz, .xz or trace.json"
_COMPARE = """
A       a directory of results, a survey or a trace, or its file
B       another
--json  print the comparison as JSON
"""
_EXPORT = f"""{_REPORT}
--format {{{",".join((*FORMATS, "svg", "folded"))}}}  Markdown, CSV, SVG: the figures of the
           report or the trace, folded: the stacks of a profile or a trace, also for speedscope
           (default: md, of a trace folded)
--out DIR  where the SVG files go; only for --format svg
"""


def trace_options(parser: argparse.ArgumentParser) -> None:
    parser.usage = "firsttouch trace [options] (-- COMMAND... | --pid N [--seconds N])"
    declare(parser, _TRACE, _trace)


def _trace(options: argparse.Namespace, reporter: Reporter) -> int:
    """Trace, print the answer on standard error, write the files; return the command's status."""
    if bool(options.command) == bool(options.pid):
        raise UserError("give a command after --, such as -- perl -e 1, or a process by --pid.")
    if options.seconds and not options.pid:
        raise UserError("--seconds is for --pid: leave it out for a command.")
    exclude(options, "try", "pid")
    chains = not options.no_call_chains
    target = Target(tuple(options.command), options.pid, options.seconds, chains)
    if number := getattr(options, "try"):
        before = read_trace_of(options.command, options.out)
        advice = remedy_to_try(before, number)
        target = replace(target, environment=with_remedy(advice.environment, os.environ))
        read = _traced(target, options.out / "tried", options, reporter)
        reporter.say(predicted_and_measured(before, advice, read.trace))
    else:
        read = _traced(target, options.out, options, reporter)
    # A recorder that was killed takes its command with it.
    status = read.trace.status if read.trace.complete else signal.SIGKILL
    code = os.waitstatus_to_exitcode(status or 0)
    return code if code >= 0 else 128 - code


def _traced(
    target: Target, directory: Path, options: argparse.Namespace, reporter: Reporter
) -> Reading:
    check_writable(directory)
    file = directory / DATA_FILE
    file.unlink(missing_ok=True)
    root = Path("/") if target.pid is None else root_of(target.pid)
    record(target, file, reporter, aside=options.json)
    provide_prices(directory, reporter, asked=not options.no_survey)
    read = read_recording(file, root, price)
    # Before the files, for which the disk may have no room.
    if not options.json:
        read.print(output_console(aside=True), directory)
    text = write_results(read, directory)
    if options.json:
        print(text, end="")
    return read


def _survey(options: argparse.Namespace, reporter: Reporter) -> int:
    check_writable(options.out)
    wanted = selected(options.experiment, settings_of(options.set))
    waiting = f"Another run is writing to {options.out}; waiting for it."
    with locked(options.out / ".lock", lambda: reporter.say(waiting)):
        survey = survey_host(options.seconds, reporter, wanted)
        write_survey(options.out, survey)
    findings = examine(survey)
    print_survey(findings, conclude(findings), output_console())
    print(f"\nAll {len(survey.samples):,} samples are in {options.out / FILE_NAME}.")
    if survey.interrupted:
        reporter.say("firsttouch: interrupted; the samples so far are printed and kept.")
        return 130
    return 1 if findings.failures else 0


def _report(options: argparse.Namespace, reporter: Reporter) -> int:
    place = _directory(options.dir)
    if place.suffix == ".json":
        print_trace(read_trace(place), output_console(), f"From {place}, without its recording.")
        return 0
    timings = timings_in(place)
    if (place / DATA_FILE).is_file():
        read = read_recording(place / DATA_FILE, price=price)
        read.print(output_console(), place)
        write_results(read, place)
    elif not timings:
        # Its error says what is wrong.
        timings = {"icount"}
    if "host" in timings:
        findings = examine(read_survey(place))
        print_survey(findings, conclude(findings), output_console())
    if "kvm" in timings:
        show_times(read_times(place))
    if "icount" not in timings:
        return 0
    dataset = read_dataset(place)
    folder = place if place.is_dir() else place.parent
    tried = changes(dataset)
    cases = functions_of(dataset, tried, folder)
    if options.table:
        print_dataset(dataset, output_console())
    elif not tried:
        print_answers(dataset, output_console())
    print_tried(tried, cases)
    print(f"Report: {write_report(dataset, folder, cases)}")
    return say_notes(dataset.notes, reporter)


def _directory(path: Path) -> Path:
    """Return the directory of a recording, also for a file there; other files are used alone."""
    if path.name in (DATA_FILE, TRACE) and (path.parent / DATA_FILE).is_file():
        return path.parent
    others = timings_in(path) or (path / DATA_FILE).exists()
    return path / TRACE if (path / TRACE).is_file() and not others else path


def _export(options: argparse.Namespace, reporter: Reporter) -> int:
    if (options.format == "svg") != (options.out is not None):
        raise UserError("--format svg writes files: give it --out FOLDER, and no other format.")
    options.dir = _directory(options.dir)
    traced = options.dir / DATA_FILE
    if options.dir.suffix == ".json":
        raise UserError(f"{options.dir} is alone: export where {DATA_FILE} is next to it.")
    if traced.is_file() and (options.format == "folded" or not timings_in(options.dir)):
        if options.format in FORMATS:
            raise UserError(f"{options.dir} has a trace: use --format folded or svg.")
        read = read_recording(traced)
        if options.out:
            picture = trace_picture(read.trace, read.totals, read.symbols)
            print(*write_figures({"faults.svg": picture}, options.out))
        else:
            print(folded_trace(read.totals, read.symbols), end="")
        return 0
    if timings_in(options.dir) == {"host"}:
        raise UserError(f"{options.dir} has a survey: `report` prints it; {FILE_NAME} is its data.")
    dataset = read_dataset(options.dir)
    if options.out:
        for file in write_figures(figure_files(dataset), options.out):
            print(file)
    elif options.format == "folded":
        if not (stacks := folded(dataset)):
            raise UserError(f"{options.dir} has no profile: give one of `firsttouch profile`.")
        print(stacks, end="")
    else:
        print(export(dataset, options.format or "md"), end="")
    return say_notes(dataset.notes, reporter)


def _compare(options: argparse.Namespace, reporter: Reporter) -> int:
    a, b = _directory(options.a), _directory(options.b)
    comparison = compared_traces(a, b)
    if comparison is None:
        ours, theirs = timings_in(a), timings_in(b)
        timings = ours & theirs
        if ours and theirs and not timings:
            raise UserError(f"{a} and {b} have no results in common: compare two of a kind.")
        if timings == {"kvm"}:
            raise UserError("measure both kernels in one run, by `firsttouch try PATCH --time`.")
        if timings == {"host"}:
            comparison = compared_surveys(a, b)
        else:
            first, second = read_dataset(a), read_dataset(b)
            comparison = compare(first, second)
            say_notes([*first.notes, *second.notes], reporter)
    if options.json:
        print(dump_json(comparison_document(comparison)), end="")
    else:
        print_comparison(comparison, output_console(), str(a), str(b))
    return 1 if comparison.contradictory else 0


survey_options = functools.partial(declare, text=_SURVEY, run=_survey)
report_options = functools.partial(
    declare, text=f"{_REPORT}\n--table  print every row of counts\n", run=_report
)
compare_options = functools.partial(declare, text=_COMPARE, run=_compare)
export_options = functools.partial(declare, text=_EXPORT, run=_export)
