# SPDX-License-Identifier: GPL-2.0
"""A program with a known number of faults of each kind: all are told, and the kinds sum up."""

import os
import re
import subprocess
import time
from collections import defaultdict
from pathlib import Path
from subprocess import PIPE

import pytest

from firsttouch.trace.recording import DATA_FILE
from firsttouch.trace.records import Recording
from firsttouch.trace.sites import FILE_NAME, Trace, read_trace
from tests.conftest import Firsttouch
from tests.trace.conftest import Compile, run_trace, sentences_of

pytestmark = pytest.mark.long

# By function of kinds.c; files are apart, because the kernel maps pages around a fault.
KNOWN = {
    "first_write": {"first write": 101 + 107 + 109 + 113 + 127},
    "zero_page": {"zero page": 103},
    "second": {"read, then written": 50},
    "unmapped": {"again": 107},
    "dropped": {"again": 109},
    "shrunk": {"again": 113},
    "child": {"after fork": 127},
    "parent": {"after fork": 127},
    "private_file": {"private file": 131},
    "shared": {"shared": 137},
    "after_exec": {"first write": 151},
}


# The system calls that give back what comes again.
GIVERS = {"unmapped": "munmap", "dropped": "madvise", "shrunk": "brk"}


def by_function(trace: Trace) -> dict[str, dict[str, int]]:
    """Return the faults of kinds.c by function and kind."""
    counted: dict[str, dict[str, int]] = defaultdict(dict)
    for place in trace.fault_places:
        # Not what it calls, such as wait4.
        if place.place.file.endswith("kinds.c") and not place.leaf:
            of = counted[place.place.function]
            of[place.kind] = of.get(place.kind, 0) + place.faults
    return counted


@pytest.mark.parametrize("chains", [(), ("--no-call-chains",)], ids=["chains", "plain"])
def test_each_fault_has_its_kind(
    firsttouch: Firsttouch, compile_c: Compile, chains: tuple[str, ...]
) -> None:
    program = compile_c("kinds.c", "-fno-omit-frame-pointer")
    trace = run_trace(firsttouch, *chains, "--", program)
    counted = by_function(trace)
    assert {name: counted[name] for name in KNOWN} == KNOWN
    assert 1 <= counted["file"]["file"] <= 131 and list(counted["file"]) == ["file"]
    assert sum(trace.fault_kinds.values()) == trace.faults
    assert sum(program.faults for program in trace.programs) == trace.faults
    # The command, and two children, of which one executes a program of the same name.
    assert sum(process.faults for process in trace.processes) == trace.faults
    assert len({process.pid for process in trace.processes}) == 3
    assert trace.fault_kinds["after fork"] >= 2 * 127
    assert trace.fault_kinds["read, then written"] == trace.doubles
    # What the kernel counted is told or said to be missing, and none of it is lost.
    assert trace.lost == 0 and trace.unseen is not None
    in_kernel = trace.fault_kinds.get("in the kernel", 0) + trace.unseen
    assert in_kernel >= 131
    if os.geteuid() == 0:
        assert trace.fault_kinds["in the kernel"] >= 131
        # exec makes the stack of the program.
        assert "execve(2)" in {
            str(place.place) for place in trace.fault_places if place.kind == "in the kernel"
        }
    if not chains:
        assert {
            place.callers[:1] for place in trace.fault_places if place.place.function in KNOWN
        } == {("main",)}
    # Who is not root may not see the calls.
    for place in trace.fault_places:
        call = GIVERS.get(place.place.function) if os.geteuid() == 0 else None
        assert place.given_back[:1] == ((call,) if call else ())
        if call and not chains:
            # The function of the C library is called by the program's.
            assert place.given_back[2] == "main"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root sees system calls")
def test_calls_are_seen_where_nobody_has_mounted_tracefs(recorder: Path, tmp_path: Path) -> None:
    script = f"umount /sys/kernel/tracing 2>/dev/null; {recorder} -o trace.data -- /bin/true"
    subprocess.run(["unshare", "--mount", "sh", "-c", script], cwd=tmp_path, check=True)
    assert Recording(tmp_path / "trace.data").says_calls


def test_the_answer_says_what_most_faults_are(firsttouch: Firsttouch, compile_c: Compile) -> None:
    trace = run_trace(firsttouch, "--", compile_c("kinds.c"))
    assert " % again" in sentences_of(firsttouch)
    page = (firsttouch.directory / "out" / "trace.html").read_text()
    assert "Faults by kind, program and process" in page and "private file" in page
    # Without its script the table of places is a table: whole, and in the order of faults.
    (table,) = re.findall(r'<div class="sorts">.*?</div>', page, re.DOTALL)
    shown = [int(n.replace(",", "")) for n in re.findall(r'"Faults"[^>]*>([\d,]+)<', table)]
    assert shown == [place.faults for place in trace.fault_places]
    assert len(set(re.findall(r'rect class="(kind-\d)"', page))) >= 7
    assert not re.search(r'(src|href)="(?!#|data:)|url\((?!#)|@import', page)


@pytest.mark.parametrize("attached", [False, True], ids=["command", "pid"])
def test_threads_are_told_apart_by_their_names(
    firsttouch: Firsttouch, compile_c: Compile, attached: bool
) -> None:
    """Also those that have their names before anybody looks at the process."""
    program = compile_c("threads.c")
    if not attached:
        firsttouch("trace", "--out", "out", "--", program)
    else:
        with subprocess.Popen([program], stdin=PIPE, stdout=PIPE) as process:
            assert process.stdout and process.stdout.readline() == b"named\n"
            command = firsttouch.command("trace", "--out", "out", "--pid", str(process.pid))
            file = firsttouch.directory / "out" / DATA_FILE
            where, variables = firsttouch.directory, firsttouch.environment()
            with subprocess.Popen(command, cwd=where, env=variables, stderr=PIPE) as tracer:
                while tracer.poll() is None and not (
                    file.exists() and b"worker" in file.read_bytes()
                ):
                    time.sleep(0.05)
                process.communicate(b"\n")
                _, said = tracer.communicate()
                assert tracer.returncode == 0, said.decode()
    trace = read_trace(firsttouch.directory / "out" / FILE_NAME)
    (worker,) = (thread for thread in trace.threads if thread.name == "worker")
    assert worker.members == 2 and worker.faults >= 2 * 211
    assert sum(thread.faults for thread in trace.threads) == trace.faults
    page = (firsttouch.directory / "out" / "trace.html").read_text()
    assert '<th scope="row">worker</th><td data-label="Threads" class="n">2</td>' in page
