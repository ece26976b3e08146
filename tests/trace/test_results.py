# SPDX-License-Identifier: GPL-2.0
"""trace.json, the page and the comparison, from traces made by hand."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from firsttouch.errors import UserError
from firsttouch.finder.document import FILE_NAME, read_trace, trace_document
from firsttouch.finder.sites import REMEDIES, Price, Site, Trace
from firsttouch.finder.symbols import Location
from firsttouch.output.terminal import output_console
from firsttouch.places import EXPERIMENTS, REPOSITORY
from firsttouch.survey.document import read_survey
from firsttouch.survey.findings import examine
from firsttouch.trace.flame import flame_graph, fold
from firsttouch.trace.page import _excerpt
from firsttouch.trace.prices import price
from firsttouch.trace.printing import print_programs
from firsttouch.trace.sentences import between, conclude, cost
from firsttouch.trace.two_traces import compare_traces, compared_traces
from tests.support import made_results

HERE = Location("/usr/bin/server", 0x1000, "probe", "/src/table.c", 12)
THERE = Location("/usr/bin/server", 0x1040, "insert", "/src/table.c", 40)


def site(doubles: int, kind: str = "apart", memory: str = "anonymous", **removed: int) -> Site:
    removable = dict.fromkeys(REMEDIES, 0) | removed
    return Site(kind, memory, HERE, THERE, "mov", "mov", doubles, removable)


def trace(*sites: Site, faults: int = 1000, lost: int = 0) -> Trace:
    return Trace(
        ("server", "--start"), "x86_64", "6.12", 4096, True, 0, 2.0, faults, 0, faults, lost, 7, 0,
        0, 5, sites,
    )  # fmt: skip


def test_what_is_written_is_read(tmp_path: Path) -> None:
    written = replace(
        trace(site(40, source=39), site(2, "load-store")),
        prices=(Price(500.0, "ns", "measured"),),
    )
    file = tmp_path / FILE_NAME
    file.write_text(trace_document(written, ["sentence"]))
    assert read_trace(file) == written


def test_an_older_trace_is_read_without_what_has_left(tmp_path: Path) -> None:
    written = trace(site(40, source=40))
    older = json.loads(trace_document(written, ()))
    older |= {"upgraded": 9, "vain": {"pages": 3, "unsure": 2, "unplaced": 1}}
    older["sites"][0]["removable"] |= {"exclusive": 0, "learn": 39}
    file = tmp_path / FILE_NAME
    file.write_text(json.dumps(older))
    assert read_trace(file) == written


@pytest.mark.parametrize("text", ["", "{", "[]", '{"a": 1}', '{"schema": 9}'])
def test_what_is_no_trace_is_refused_in_a_sentence(tmp_path: Path, text: str) -> None:
    file = tmp_path / FILE_NAME
    file.write_text(text)
    with pytest.raises(UserError, match=r"no trace|schema"):
        read_trace(file)


def test_the_sentences_have_the_figures() -> None:
    found = replace(trace(site(40, source=39)), prices=(Price(500.0, "ns", "measured"),))
    said = " ".join(conclude(found))
    for part in (
        "server --start: of 1,000 page faults, 40 (4.0 %) are second faults",
        "probe (table.c:12), written by insert (table.c:40)",
        "40 by a change of the source",
        "0.02 ms of processor time",
        "7 more faults",
    ):
        assert part in said, said


@pytest.mark.parametrize(("lost", "bound"), [(1, False), (2, True)])
def test_more_than_a_thousandth_lost_is_a_lower_bound(lost: int, bound: bool) -> None:
    found = trace(site(40), lost=lost)
    assert found.lower_bound == bound
    assert ("at least 40" in conclude(found)[0]) == bound


def test_a_place_is_named_by_what_is_known() -> None:
    unknown = Location("/lib/libc.so.6", 0x85B8E)
    assert between(replace(site(1), read=unknown, write=unknown)) == "libc.so.6+0x85b8e"
    same = replace(site(1), write=replace(HERE, line=14, offset=0x1010))
    assert between(same) == "probe (table.c:12, written in 14)"


def test_a_comparison_says_what_a_fix_removed() -> None:
    comparison = compare_traces(
        trace(site(40), site(5, "load-store")), trace(site(5, "load-store"))
    )
    assert comparison.sentences[0] == "40 of 45 double faults are gone."
    lines = {line.names[0]: (line.a, line.b) for line in comparison.lines}
    assert lines["probe, written by insert (apart)"] == (40, 0)


def test_directories_with_other_results_are_compared_by_those(tmp_path: Path) -> None:
    a, b, empty = (tmp_path / name for name in ("a", "b", "empty"))
    for folder in (a, b):
        folder.mkdir()
        (folder / FILE_NAME).write_text(trace_document(trace(site(1)), []))
    assert compared_traces(a, b)
    # A survey that prices the doubles of one does not make it another thing.
    (a / "survey.json").touch()
    assert compared_traces(a, b)
    (b / "results.jsonl").touch()
    assert compared_traces(a, b) is None
    assert compared_traces(a / FILE_NAME, b / FILE_NAME)
    assert compared_traces(empty, empty) is None
    with pytest.raises(UserError, match=f"{empty} has no trace to compare with"):
        compared_traces(a / FILE_NAME, empty)


def test_programs_of_guests_have_a_line_each_with_their_doubles_on_each_arm() -> None:
    stock, other = trace(site(5), site(30, memory="private file")), trace(faults=2000)
    programs = {"little": {"stock": trace(site(1))}, "much": {"stock": stock, "on": other}}
    console = output_console()
    with console.capture() as printed:
        print_programs(programs, console)
    lines = [line.split() for line in printed.get().splitlines()]
    assert lines[1:] == [
        ["much", "1,000", "35", "0", "3.5", "%", "5", "probe", "(table.c:12)"],
        ["little", "1,000", "1", "0.1", "%", "1", "probe", "(table.c:12)"],
    ]


@pytest.mark.parametrize(
    ("status", "said"),
    [(3 << 8, "ended with status 3"), (11, "was ended by signal 11 (Segmentation fault)")],
)
def test_a_command_that_failed_is_said(status: int, said: str) -> None:
    assert f"The command {said}." in conclude(replace(trace(site(1)), status=status))


def test_a_flame_graph_has_a_box_for_each_call_of_some_width() -> None:
    chains = [("leaf", "main"), ("other", "main"), ("rare", "main")]
    counts = [600, 399, 1]
    faults = fold(chains, counts)
    assert faults == Counter({("main", "leaf"): 600, ("main", "other"): 399, ("main", "rare"): 1})
    drawn = flame_graph(faults, {("main", "leaf"): 600}, 500.0).shapes
    assert "leaf: 600 faults (60.0 %), 600 of them double" in drawn
    assert "fault-flame most" in drawn and "main: 1,000 faults" in drawn
    # Half a unit wide: nobody would see it.
    assert "rare" not in drawn


def test_a_second_fault_costs_what_a_survey_measured(tmp_path: Path) -> None:
    recorded = REPOSITORY / "tests/survey/recorded/survey-x86-64.json"
    shutil.copy(recorded, tmp_path / "survey.json")
    (found,) = price(trace(site(40)), tmp_path)
    findings = examine(read_survey(recorded))
    both, one = findings.touch("load-store"), findings.touch("store")
    assert both and one and both.busy and one.busy
    assert found.each == both.busy.median - one.busy.median > 0
    assert price(replace(trace(site(40)), machine="aarch64"), tmp_path) == ()


def test_on_arm64_it_costs_the_instructions_that_the_lab_counted(tmp_path: Path) -> None:
    made_results.write(tmp_path, made_results.plan(EXPERIMENTS, ["populate"], page="4k"))
    (found,) = price(replace(trace(site(40)), machine="aarch64"), tmp_path)
    assert found.each > 0 and found.unit == "instructions of the kernel"
    assert "counted by the lab" in cost(replace(trace(site(40)), prices=(found,)), found)
    assert price(trace(site(40)), tmp_path) == ()


@pytest.mark.parametrize("what", ["source", "FIFO", "large"])
def test_only_a_source_of_this_host_has_an_excerpt(tmp_path: Path, what: str) -> None:
    """DWARF may name anything: a FIFO has no end, and /dev/zero neither."""
    file = tmp_path / "table.c"
    if what == "FIFO":
        os.mkfifo(file)
    else:
        file.write_text("\n" * 50)
    if what == "large":
        os.truncate(file, 9 << 20)
    place = replace(HERE, file=str(file))
    assert bool(_excerpt(place)) == (what == "source")
