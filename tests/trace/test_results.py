# SPDX-License-Identifier: GPL-2.0
"""trace.json, the page and the comparison, from traces made by hand."""

import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from firsttouch.cli.main import main
from firsttouch.errors import UserError
from firsttouch.survey.document import read_survey
from firsttouch.survey.findings import examine
from firsttouch.survey.run import price
from firsttouch.trace.page import _places, draw_calls
from firsttouch.trace.remedies import KEEP, MTHP_64, THP
from firsttouch.trace.sentences import (
    between,
    compare_traces,
    compared_traces,
    conclude,
    doubled,
    print_trace,
)
from firsttouch.trace.sites import (
    FILE_NAME,
    FaultPlace,
    Location,
    Members,
    Remedy,
    Site,
    Trace,
    read_trace,
    shortened,
    trace_document,
)
from firsttouch.trace.spaces import ANONYMOUS, PRIVATE_FILE
from firsttouch.views.terminal import output_console
from tests.support.surveys import SURVEY

_SURVEYED = SURVEY
HERE = Location("/usr/bin/server", 0x1000, "probe", "/src/table.c", 12)
THERE = Location("/usr/bin/server", 0x1040, "insert", "/src/table.c", 40)


def site(doubles: int, kind: str = "apart", memory: str = "anonymous") -> Site:
    return Site(kind, memory, HERE, THERE, doubles)


def trace(*sites: Site, faults: int = 1000, lost: int = 0) -> Trace:
    return Trace(
        ("server", "--start"), "x86_64", "6.12", 4096, True, 0, 2.0, faults, faults, lost, 7,
        sites,
    )  # fmt: skip


_AGAIN = FaultPlace(
    "again", HERE, 500, ("main",), ("munmap", "__munmap", "unmap<int>", "main"),
)  # fmt: skip


def test_what_is_written_is_read(tmp_path: Path) -> None:
    written = replace(
        trace(site(40), site(2, "atomic")),
        priced=9,
        ns=4500.0,
        basis="prices.jsonl",
        remedies=(Remedy(KEEP, 9, 0, 4500.0), Remedy(THP, 9, 0)),
        system=0.5,
        fault_places=(replace(_AGAIN, callers=()), replace(_AGAIN, given_back=())),
    )
    (file := tmp_path / FILE_NAME).write_text(trace_document(written, ["sentence"]))
    assert read_trace(file) == written
    assert _places(written).rows[0][-1].startswith("given back by munmap(2)")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"a": 1}', '{"schema": 9}'])
def test_what_is_no_trace_is_refused_in_a_sentence(tmp_path: Path, text: str) -> None:
    file = tmp_path / FILE_NAME
    file.write_text(text)
    with pytest.raises(UserError, match=r"no JSON object|schema"):
        read_trace(file)


@pytest.mark.parametrize(("lost", "bound"), [(1, False), (2, True)])
def test_more_than_a_thousandth_lost_is_a_lower_bound(lost: int, bound: bool) -> None:
    traced = trace(site(60), lost=lost)
    assert traced.lower_bound == bound
    assert ("at least 60" in "".join(doubled(traced))) == bound


def test_the_first_screen_has_14_lines_of_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    kinds = {"first write": 700, "again": 200, "read, then written": 100}
    places = (FaultPlace("again", replace(HERE, function="f" * 90), 100, ("main",)),) * 9
    remedies = (Remedy(KEEP, 500, 9 << 20, 45e6), Remedy(MTHP_64, 200, 0))
    for doubles, many in ((60, True), (40, False)):
        traced = replace(
            trace(site(doubles)), fault_kinds=kinds, fault_places=places, remedies=remedies,
            allocator="glibc", priced=200, ns=1e5,
        )  # fmt: skip
        print_trace(traced, output_console(), "More: out/trace.html")
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) <= 14
        assert all(len(line) <= 80 for line in lines if "GLIBC" not in line)
        assert lines[0] == "1,000 page faults, at least 0.1 ms of 2.00 s (0.0 %): server --start"
        assert lines[1].startswith("70.0 % first write, 20.0 % again, 10.0 % read, then w")
        assert lines[2].split() == [
            "1", "-50.0", "%", "-45.0", "ms", "+9.0", "MiB", "--try", "1",
            "keep", "what", "is", "given", "back", "(glibc)",
        ]  # fmt: skip
        assert any(line.startswith(f"{doubles} doubles") for line in lines) is many
    print_trace(trace(faults=49), output_console(), "More: out/trace.html")
    assert capsys.readouterr().out.startswith("server --start: 49 page faults.")


@pytest.mark.parametrize(("program", "tool"), [
    ("node", "node --perf-basic-prof"), ("mono-sgen", "mono --jitmap"), ("a", "runtime"),
])  # fmt: skip
def test_code_without_names_is_said_of_any_fault(program: str, tool: str) -> None:
    members = (Members(program, 1000),)
    traced = replace(trace(), fault_kinds={"file": 1000}, nameless=500, programs=members)
    said = " ".join(conclude(traced))
    assert "500 faults (50.0 %) are in JIT-compiled code" in said and tool in said


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("main", "main"), ("v8::(anonymous namespace)::A<B<C> >::f", "v8::A<>::f"),
        ("v8::A<B<C>, D<(E)2> >::f", "v8::A<>::f"), ("a::operator<", "a::operator<"),
        ("std::operator<< <char>", "std::operator<< <char>"), ("a::operator<=>", "a::operator<=>"),
        ("<alloc::Vec<T> as Drop>::drop", "<alloc::Vec<> as Drop>::drop"),
        ("f<fn(i32) -> u8>::g<T>", "f<>::g<>"), ("broken<a", "broken<a"),
    ],
)  # fmt: skip
def test_names_of_functions_are_read_without_arguments_of_templates(name: str, short: str) -> None:
    assert shortened(name) == short
    assert str(replace(HERE, function=name)) == f"{short} (table.c:12)"


def test_a_place_is_named_by_what_is_known() -> None:
    unknown = Location("/lib/libc.so.6", 0x85B8E)
    assert between(replace(site(1), read=unknown, write=unknown)) == "libc.so.6+0x85b8e"
    same = replace(site(1), write=replace(HERE, line=14, offset=0x1010))
    assert between(same) == "probe (table.c:12, written in 14)"


def test_a_comparison_says_which_kinds_and_places_of_all_faults_changed() -> None:
    def faults(writes: int, again: int) -> Trace:
        return replace(
            trace(faults=writes + again),
            fault_kinds={"first write": writes, "again": again},
            fault_places=(FaultPlace("again", HERE, again, ()),
                          FaultPlace("first write", HERE, writes, ())),
        )  # fmt: skip

    comparison = compare_traces(faults(500, 300), faults(501, 0))
    assert comparison.sentences == ("800 page faults before, 501 after.",)
    lines = {line.names[0]: (line.a, line.b) for line in comparison.lines}
    assert lines == {
        "page faults": (800, 501), "  first write": (500, 501), "  again": (300, 0),
        "probe (again)": (300, 0), "probe (first write)": (500, 501),
    }  # fmt: skip


def test_directories_with_other_results_are_compared_by_those(tmp_path: Path) -> None:
    a, b, empty = (tmp_path / name for name in ("a", "b", "empty"))
    for folder in (a, b):
        folder.mkdir()
        (folder / FILE_NAME).write_text(trace_document(trace(site(1)), []))
    assert compared_traces(a, b) and main(["report", str(a)]) == 0
    # A survey that prices the doubles of one does not make it another thing.
    (a / "results.jsonl").touch()
    assert compared_traces(a, b)
    (b / "results.jsonl").touch()
    assert compared_traces(a, b) is None
    assert compared_traces(a / FILE_NAME, (b / FILE_NAME).rename(tmp_path / "b.json"))
    assert main(["report", str(tmp_path / "b.json")]) == 0
    assert compared_traces(empty, empty) is compared_traces(a / "results.jsonl", b) is None
    with pytest.raises(UserError, match=f"only one of .* and {empty} has a trace"):
        compared_traces(a / FILE_NAME, empty)


@pytest.mark.parametrize(("status", "said"), [
    (3 << 8, "ended with status 3"), (11, "ended by signal 11 (Segmentation fault)"),
])  # fmt: skip
def test_a_command_that_failed_is_said(status: int, said: str) -> None:
    assert f"The command {said}." in conclude(replace(trace(site(1)), status=status))


def test_a_flame_graph_has_a_box_for_each_call_of_some_width_and_its_kinds() -> None:
    faults = {
        ("main", "leaf", "[again]"): 1200,
        ("main", "other", "[file]", "[first write]"): 799,
        ("main", "rare", "[file]"): 1,
    }
    drawn = draw_calls(faults, 500.0).shapes
    boxes_drawn = re.findall(r'class="([^"]*)"[^>]* width="([^"]*)"[^>]*><title>([^<:]*)', drawn)
    boxes = {name: (float(width), kind) for kind, width, name in boxes_drawn}
    assert boxes["[again]"] == (300, "kind-3") and boxes["[first write]"][1] == "kind-0"
    # A file without symbols that is called as a kind is none.
    assert boxes["[file]"][1] == boxes["main"][1] == "flame"
    assert "leaf: 1,200 faults (60.0 %)" in drawn
    # A quarter of a unit wide: nobody would see it.
    assert "rare" not in drawn


def on_host(survey: Path, kinds: Mapping[str, int] | None = None) -> Trace:
    """Return a trace on the host of a survey."""
    host = read_survey(survey).host
    return replace(trace(site(40)), kernel=host.kernel, fault_kinds=kinds or {})


@pytest.mark.parametrize(("machine", "kernel"), [("aarch64", ""), ("x86_64", "6.1")])
def test_a_survey_of_another_host_prices_nothing(tmp_path: Path, machine: str, kernel: str) -> None:
    shutil.copy(_SURVEYED, tmp_path / "results.jsonl")
    here = on_host(_SURVEYED, {"again": 9})
    other = replace(here, machine=machine, kernel=kernel or here.kernel)
    assert price(other, tmp_path).ns == 0
    assert price(here, tmp_path).ns > 0


def test_a_huge_page_is_cleared_as_a_whole(tmp_path: Path) -> None:
    """The host of this survey has no folios of 64 KiB."""
    shutil.copy(_SURVEYED, tmp_path / "prices.jsonl")
    size = 4096
    saving = tuple(Remedy(name, 900, 50 * size) for name in (THP, MTHP_64))
    traced = price(replace(on_host(_SURVEYED, {}), remedies=saving), tmp_path)
    findings = examine(read_survey(_SURVEYED))
    store, huge = findings.touch("store"), findings.touch("store", "2m")
    assert store and store.busy and huge and huge.busy
    saved = 900 * store.busy.median - 950 * huge.busy.median * size / huge.page_size
    assert [remedy.ns for remedy in traced.remedies] == [pytest.approx(saved), None]


def test_each_kind_is_priced_that_a_survey_measured_and_the_others_are_named(
    tmp_path: Path,
) -> None:
    shutil.copy(_SURVEYED, tmp_path / "prices.jsonl")
    kinds = {"first write": 1000, "again": 500, "zero page": 10, "file": 7, "in the kernel": 3}
    remedies = (Remedy(KEEP, 500, 0), Remedy(MTHP_64, 900, 0))
    traced = price(replace(on_host(_SURVEYED, kinds), remedies=remedies, system=0.5), tmp_path)
    findings = examine(read_survey(_SURVEYED))
    store, read = (findings.touch(kind) for kind in ("store", "read"))
    assert store and store.busy and read and read.busy
    assert traced.priced == 1510
    keep, folios = (remedy.ns for remedy in traced.remedies)
    assert keep == 500 * store.busy.median
    assert folios is None
    said = " ".join(conclude(traced))
    middle = 1500 * store.busy.median + 10 * read.busy.median
    assert f"1,000 page faults, about {middle / 1e6:,.1f} ms of 2.00 s" in said


def test_doubles_are_counted_by_kind_and_memory() -> None:
    traced = trace(site(5, "atomic"), site(7, "atomic", PRIVATE_FILE), site(11))
    assert (traced.doubles, traced.doubles_of(kind="atomic")) == (23, 12)
    assert traced.doubles_of(memory=ANONYMOUS) == 16
    assert traced.doubles_of(kind="atomic", memory=ANONYMOUS) == 5
