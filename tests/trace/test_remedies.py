# SPDX-License-Identifier: GPL-2.0
"""What a remedy was predicted to save is what it saves."""

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from firsttouch.trace.reading import read_recording
from firsttouch.trace.remedies import HEAP, KEEP, MTHP_64, THP
from firsttouch.trace.sites import FILE_NAME, Remedy, Trace, read_trace
from tests.conftest import Firsttouch
from tests.trace.conftest import Compile, run_trace

_THP = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def huge_pages_are(policy: str) -> bool:
    return _THP.is_file() and f"[{policy}]" in _THP.read_text()


def remedies(traced: Trace) -> Mapping[str, Remedy]:
    return {remedy.name: remedy for remedy in traced.remedies}


# 16,384 pages are in a large block, 8,000 in a heap; all blocks but the first come again.
# What the program maps beside malloc(3) comes again, too, and is not kept.
@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "again", "pages_saved"),
    [
        ("keep", 3 * (16384 + 1), 3 * (16384 + 1)),
        ("trim", 3 * 8000, 3 * 8000),
        ("thread", 3 * 8000, 3 * 8000),
        ("maps", 6 * 16384, 3 * 16384),
        # Only who sees munmap(2) knows that the blocks are the same to malloc(3).
        pytest.param(
            "elsewhere",
            0,
            3 * (16384 + 1),
            marks=pytest.mark.skipif(os.geteuid() != 0, reason="only root sees system calls"),
        ),
    ],
)
def test_what_is_predicted_of_an_allocator_is_measured(
    firsttouch: Firsttouch, compile_c: Compile, kind: str, again: int, pages_saved: int
) -> None:
    traced = ("--", compile_c("remedies.c"), kind, "base")
    said = " ".join(firsttouch("trace", "--out", "out", *traced).stderr.split())
    remedy = re.search(r"--try (\d) keep what", said)
    assert remedy, said
    done = firsttouch("trace", "--out", "out", "--try", remedy[1], *traced)
    assert done.returncode == 0, done.stderr
    tried = re.search(r"([\d,]+) predicted, ([\d,]+) measured", " ".join(done.stderr.split()))
    assert tried, done.stderr
    predicted, measured = (int(number.replace(",", "")) for number in tried.groups())
    before = read_trace(firsttouch.directory / "out" / FILE_NAME)
    after = read_trace(firsttouch.directory / "out" / "tried" / FILE_NAME)
    assert (before.allocator, after.faults) == ("glibc", measured)
    assert before.fault_kinds.get("again", 0) == pytest.approx(again, rel=0.05, abs=100)
    assert remedies(before)[KEEP].saved == pytest.approx(pages_saved, rel=0.05)
    assert measured == pytest.approx(predicted, rel=0.1)


def named_library(file: Path) -> Path:
    """Make a library that has a name and nothing else, by which an allocator is known."""
    subprocess.run(["gcc", "-shared", "-x", "c", "/dev/null", "-o", file], check=True)
    return file


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "pages_saved"), [("libjemalloc.so.2", 6 * 16384), ("libmimalloc.so", 0)]
)
def test_what_an_allocator_unmaps_is_kept_by_no_setting(
    firsttouch: Firsttouch, compile_c: Compile, tmp_path: Path, name: str, pages_saved: int
) -> None:
    preloaded = f"LD_PRELOAD={named_library(tmp_path / name)}"
    words = ("--no-survey", "--", "env", preloaded, compile_c("remedies.c"), "maps", "base")
    traced = run_trace(firsttouch, *words)
    assert traced.fault_kinds["again"] > 6 * 16000
    assert remedies(traced)[KEEP].saved == pytest.approx(pages_saved, rel=0.05)


@pytest.mark.long
def test_what_a_jvm_gives_back_is_kept_and_not_what_its_malloc_does(
    firsttouch: Firsttouch, compile_c: Compile, tmp_path: Path
) -> None:
    library = named_library(tmp_path / "libjvm.so")
    program = compile_c("remedies.c")
    for kind, by_jvm in (("thread", 0), ("maps", 3 * 16384)):
        preloaded = ("env", f"LD_PRELOAD={library}", program, kind, "base")
        done = firsttouch("trace", "--no-survey", "--out", "out", "--", *preloaded)
        traced = read_trace(firsttouch.directory / "out" / FILE_NAME)
        assert traced.allocator == "JVM"
        assert remedies(traced)[KEEP].saved == pytest.approx(by_jvm, rel=0.05)
        assert ("(JVM) java with -Xms" in " ".join(done.stderr.split())) is (by_jvm > 0)


@pytest.mark.long
def test_a_program_of_go_is_known_by_a_section(
    firsttouch: Firsttouch, compile_c: Compile, tmp_path: Path
) -> None:
    program = compile_c("remedies.c")
    (tmp_path / "section").write_text("Go")
    subprocess.run(
        ["objcopy", "--add-section", f".go.buildinfo={tmp_path / 'section'}", program], check=True
    )
    done = firsttouch("trace", "--no-survey", "--out", "out", "--", program, "maps", "base")
    assert "(Go) GODEBUG=madvdontneed=0" in " ".join(done.stderr.split())
    assert read_trace(firsttouch.directory / "out" / FILE_NAME).allocator == "Go"


@pytest.mark.long
def test_faults_are_priced_by_a_short_survey_unless_it_is_left_out(
    firsttouch: Firsttouch, compile_c: Compile
) -> None:
    program = compile_c("remedies.c")
    for words in ((), ("--no-survey",)):
        done = firsttouch("trace", *words, "--", program, "huge", "base")
        assert done.returncode == 0, done.stderr
        traced = read_trace(firsttouch.directory / "out" / FILE_NAME)
        if words:
            assert (traced.priced, traced.basis) == (0, "")
            assert "Surveying" not in done.stderr
        else:
            assert traced.priced >= traced.fault_kinds["first write"]
            assert traced.basis == "out/prices.jsonl"
            assert "page faults, about" in " ".join(done.stderr.split())
        assert traced.system is not None and traced.system > 0.001


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="only root sees faults in the kernel")
def test_memory_that_system_calls_fill_again_is_kept(
    firsttouch: Firsttouch, compile_c: Compile
) -> None:
    program = compile_c("remedies.c")
    traced = run_trace(firsttouch, "--", program, "read", "base")
    assert traced.fault_kinds["in the kernel"] > 4 * 16000
    assert remedies(traced)[KEEP].saved == pytest.approx(3 * (16384 + 1), abs=8)


@pytest.mark.long
def test_a_file_where_the_second_run_would_be_is_named(
    firsttouch: Firsttouch, compile_c: Compile
) -> None:
    (firsttouch.directory / "out").mkdir()
    (firsttouch.directory / "out/tried").write_text("mine")
    program = compile_c("remedies.c")
    words = "--no-survey", "--", program, "keep", "base"
    run_trace(firsttouch, *words)
    done = firsttouch("trace", "--try", "1", *words)
    assert (done.returncode, done.stderr.count("Traceback")) == (2, 0)
    assert "cannot write to out/tried (" in " ".join(done.stderr.split())
    assert (firsttouch.directory / "out/tried").read_text() == "mine"


@pytest.mark.long
@pytest.mark.parametrize("words", [(), ("{program}", "huge"), ("sh", "-c", "{program} huge; true")])
def test_no_huge_page_is_predicted_for_a_program_that_forbids_them(
    firsttouch: Firsttouch, compile_c: Compile, words: tuple[str, ...]
) -> None:
    """Also where it executes another program, or forks."""
    program = str(compile_c("remedies.c"))
    then = [word.format(program=program) for word in words]
    traced = run_trace(firsttouch, "--", program, "huge", "base", *then)
    # A process may end before it is looked at.
    assert all(remedies(traced)[name].saved < 100 for name in (THP, MTHP_64))


@pytest.mark.long
@pytest.mark.skipif(
    not huge_pages_are("madvise"),
    reason="this host gives huge pages to who does not ask, or to nobody",
)
@pytest.mark.parametrize("kind", ["heap", "huge"])
def test_what_is_predicted_of_huge_pages_for_the_heap_is_measured(
    firsttouch: Firsttouch, compile_c: Compile, kind: str
) -> None:
    program = compile_c("remedies.c")
    before = run_trace(firsttouch, "--", program, kind)
    assert firsttouch("trace", "--try", "1", "--", program, kind).returncode == 0
    saved = before.faults - read_trace(firsttouch.directory / "out" / "tried" / FILE_NAME).faults
    heap = remedies(before)[HEAP]
    assert before.faults > 16384
    # A heap begins at random, and up to two blocks of 512 pages at its beginning are small pages.
    assert 15000 < heap.saved - 8 < saved < max(heap.saved, heap.most) + 8


@pytest.mark.long
@pytest.mark.skipif(huge_pages_are("always"), reason="this host gives huge pages to all")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root sees mremap(2)")
def test_folios_are_predicted_where_mremap_moved_memory(
    recorder: Path, compile_c: Compile, tmp_path: Path
) -> None:
    file = tmp_path / "trace.data"
    subprocess.run([recorder, "-o", file, "--", compile_c("remedies.c"), "grow"], check=True)
    saved = {name: of.saved for name, of in remedies(read_recording(file).trace).items()}
    assert saved[MTHP_64] == pytest.approx(16384 * 15 / 16, rel=0.03)
    # The last of six times it doubles, from 32 MiB.
    assert saved[THP] > 16384 / 2 - 1024
    # At the end of a heap realloc(3) lets the block grow where it is.
    assert saved[KEEP] == pytest.approx(0, abs=8)
