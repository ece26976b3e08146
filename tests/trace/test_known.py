# SPDX-License-Identifier: GPL-2.0
"""A program with known doubles at known lines: all are found, and no other."""

import re
from pathlib import Path

import pytest

from firsttouch.trace.sites import FILE_NAME, Site, Trace, read_trace
from tests.conftest import Firsttouch
from tests.trace.conftest import FOLDER, Compile, run_trace

pytestmark = pytest.mark.long

# Pages that the program reads and then writes, by mark; 17 of the last are read by a thread.
KNOWN = {"load-store": 101, "apart": 103 + 17}


def line_of(mark: str) -> int:
    """Return the line of known.c that has `mark` as its comment."""
    text = (FOLDER / "known.c").read_text()
    (line,) = [n for n, line in enumerate(text.splitlines(), 1) if f"/* {mark} */" in line]
    return line


def own_sites(trace: Trace) -> list[Site]:
    return [site for site in trace.sites if site.read.file.endswith("known.c")]


@pytest.mark.parametrize("chains", [(), ("--no-call-chains",)], ids=["chains", "plain"])
@pytest.mark.parametrize("link", [("-static",), ()], ids=["static", "dynamic"])
def test_all_known_doubles_are_found_at_their_lines_and_no_other(
    firsttouch: Firsttouch, compile_c: Compile, link: tuple[str, ...], chains: tuple[str, ...]
) -> None:
    program = compile_c("known.c", *link)
    trace = run_trace(firsttouch, *chains, "--", program)
    doubles = {
        site.read.line: (site.doubles, site.write.line, site.kind, site.memory)
        for site in own_sites(trace)
    }
    assert doubles == {
        line_of(f"read {mark}"): (pages, line_of(f"write {mark}"), "apart", "anonymous")
        for mark, pages in KNOWN.items()
    }
    # The others are the C library's: pages of its own that it reads and writes at the start.
    others = trace.doubles - sum(KNOWN.values())
    assert others <= 12
    assert trace.lost == 0


def test_the_most_memory_of_a_process_is_told(firsttouch: Firsttouch, compile_c: Compile) -> None:
    trace = run_trace(firsttouch, "--", compile_c("known.c"))
    written = sum(KNOWN.values()) * trace.page_size
    assert written < trace.resident < written + (16 << 20)


def test_the_answer_names_the_line(firsttouch: Firsttouch, compile_c: Compile) -> None:
    done = firsttouch("trace", "--out", "out", "--", compile_c("known.c"))
    (line,) = re.findall(r"^[\d,]+ doubles \(.*", done.stderr, re.MULTILINE)
    assert "(known.c:" in line
    page = (firsttouch.directory / "out" / "trace.html").read_text()
    assert f"known.c:{line_of('read apart')}" in page


def test_code_that_is_in_no_file_is_decoded_and_named(
    firsttouch: Firsttouch, compile_c: Compile
) -> None:
    done = firsttouch("trace", "--", compile_c("jit.c"))
    Path(done.stdout.strip()).unlink()
    (site,) = [
        site
        for site in read_trace(firsttouch.directory / "out" / FILE_NAME).sites
        if site.read.object == "[JIT]"
    ]
    assert (site.kind, site.doubles) == ("apart", 331)
    assert site.read.function == site.write.function == "compiled table.js:3"
