# SPDX-License-Identifier: GPL-2.0
"""The kernel's own word on each fault: no double is false, and none is missed without a reason.

On x86-64 the error code of the exception tracepoints tells a read from a write, and a page that
is mapped from one that is not. A double is a read of a missing page, then a write to it while it
is mapped, by one process. Needs root and perf. tests/trace/test_guest.py has the same for arm64,
where QEMU's log is the reference.
"""

import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest

from docs.evidence.draw.predicted import program_root
from firsttouch.building.programs import HOST_RECORDER
from firsttouch.catalog.experiments import load_experiment
from firsttouch.progress import Reporter
from firsttouch.trace.doubles import Finder
from firsttouch.trace.events import Fault
from firsttouch.trace.kinds import First
from firsttouch.trace.mapped_files import MappedFiles
from firsttouch.trace.process import Process
from firsttouch.trace.records import Recording
from tests.trace.conftest import NOBODY, Compile, make_public

_EVENTS = "exceptions:page_fault_user,exceptions:page_fault_kernel"
# Bits of the error code.
_MAPPED, _WRITE, _USER, _FETCH = 1, 2, 4, 16
_LINE = re.compile(
    r"^\s*(?P<name>.*?)\s+(?P<pid>\d+)/(?P<tid>\d+)\s+exceptions:page_fault_\w+: +"
    r"address=(?P<address>\w+) ip=\w+ error_code=(?P<code>\w+)"
)
# The recorder's name, which its child has, too, until it executes the program.
_RECORDER = "ftrecord"
_END_OF_USERS = 1 << 47
_PAGE = 12


class Reported(NamedTuple):
    """A page fault as a tracepoint has it."""

    pid: int
    tid: int
    address: int
    code: int


@dataclass(frozen=True)
class Verdict:
    """What both say of a program.

    `unmatched` faults of the program itself have only one of them. Of the `true`
    doubles `missed` are not told; of those `told` `false` are none. `hidden` doubles
    are not told because the kernel itself had a part in them, which only root may see.
    """

    program: str
    faults: int
    unmatched: int
    true: int
    told: int
    missed: int
    false: int
    hidden: int


def judge(program: str, arguments: Sequence[str | Path], *, user: bool = False) -> Verdict:
    """Return the verdict on a run of the recorder; `user`: all that runs is nobody's.

    `arguments` are the recorder's, without its file.
    """
    with tempfile.TemporaryDirectory(prefix="firsttouch-oracle-") as name:
        folder = Path(name)
        folder.chmod(0o777)
        recorder, trace, reported = (folder / name for name in (_RECORDER, "trace", "perf"))
        recorder.write_bytes(HOST_RECORDER.obtain(Reporter()).read_bytes())
        recorder.chmod(0o755)
        rights = (
            ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"] if user else []
        )
        subprocess.run(
            ["perf", "record", "-q", "-B", "-m", "64M", "-e", _EVENTS, "-o", reported, "--",
             *rights, recorder, "-o", trace, *arguments],
            check=True, capture_output=True, cwd=folder, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        return _compare(program, list(_reported(reported)), trace, user=user)


def _reported(file: Path) -> Iterator[Reported]:
    """Yield the faults of the traced program alone, in the order of time."""
    with subprocess.Popen(
        ["perf", "script", "-i", file, "-F", "comm,pid,tid,event,trace"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace",
    ) as script:  # fmt: skip
        assert script.stdout is not None
        recorder = None
        for match in filter(None, map(_LINE.match, script.stdout)):
            fault = Reported(
                int(match["pid"]), int(match["tid"]), int(match["address"], 16),
                int(match["code"], 16),
            )  # fmt: skip
            # perf's child becomes the recorder, and has the first faults.
            recorder = recorder or fault.pid
            if (
                fault.pid == recorder
                or match["name"] == _RECORDER
                or fault.address >= _END_OF_USERS
            ):
                continue
            yield fault


class Watching(Finder):
    """Finds doubles, and keeps the second fault of each."""

    def __init__(self, recording: Recording, mapped_files: MappedFiles) -> None:
        super().__init__(recording, mapped_files)
        self.seconds: list[Fault] = []

    def _double(self, process: Process, first: First, fault: Fault, memory: str) -> None:
        super()._double(process, first, fault, memory)
        self.seconds.append(fault)


def _compare(program: str, reported: Sequence[Reported], trace: Path, *, user: bool) -> Verdict:
    finder = Watching(Recording(trace), MappedFiles(Path("/")))
    finder.run()
    faults = [event for event in Recording(trace).events() if isinstance(event, Fault)]
    # The kernel also tries accesses with page faults disabled, which perf does not count.
    unmatched = Counter((fault.tid, fault.address) for fault in reported if fault.code & _USER)
    unmatched.subtract((fault.tid, fault.address) for fault in faults if fault.user)
    true, by_kernel = _doubles(reported)
    told = Counter((fault.pid, fault.address >> _PAGE) for fault in finder.seconds)
    missed = true - told
    hidden = missed & by_kernel if user else Counter[tuple[int, int]]()
    return Verdict(
        program,
        len(faults),
        sum(map(abs, unmatched.values())),
        true.total(),
        told.total(),
        (missed - hidden).total(),
        (told - true).total(),
        hidden.total(),
    )


def _doubles(
    reported: Sequence[Reported],
) -> tuple[Counter[tuple[int, int]], Counter[tuple[int, int]]]:
    """Return all doubles by process and page, and those of them that the kernel had a part in."""
    read: dict[tuple[int, int], Reported] = {}
    doubles: Counter[tuple[int, int]] = Counter()
    by_kernel: Counter[tuple[int, int]] = Counter()
    for fault in reported:
        page = fault.pid, fault.address >> _PAGE
        if fault.code & _MAPPED:
            first = read.pop(page, None) if fault.code & _WRITE else None
            if first:
                doubles[page] += 1
                by_kernel[page] += not fault.code & first.code & _USER
        elif fault.code & (_WRITE | _FETCH):
            read.pop(page, None)
        else:
            read[page] = fault
    return doubles, by_kernel


def judge_script(program: str, script: str, root: Path) -> Verdict:
    """Return the verdict on a shell script with `root` as its root directory."""
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(script)
        file.flush()
        return judge(program, ["-r", root, "-f", file.name])


_needs_tracepoints = pytest.mark.skipif(
    os.geteuid() != 0 or platform.machine() != "x86_64",
    reason="the tracepoints are x86-64's, and root's",
)
# Objects that are made and freed: the heap shrinks and grows again.
_FREED = "for k in range(9):\n    x = [bytes(1000) for i in range(20000)]\n    del x\n"
_PROGRAMS = load_experiment("doubles").scripts


def _is_right(verdict: Verdict) -> None:
    assert (verdict.false, verdict.missed) == (0, 0), verdict
    assert verdict.true
    assert verdict.unmatched == 0


@_needs_tracepoints
@pytest.mark.long
@pytest.mark.parametrize("user", [False, True], ids=["root", "nobody"])
@pytest.mark.parametrize("what", ["known.c", "trouble.c", "python", "shell"])
def test_small_programs(compile_c: Compile, tmp_path: Path, what: str, user: bool) -> None:
    if what == "python":
        (tmp_path / "freed.py").write_text(_FREED)
        make_public(Path(shutil.which("true") or ""), tmp_path)
        command: list[str | Path] = ["/usr/bin/python3", "-S", tmp_path / "freed.py"]
    elif what == "shell":
        command = ["sh", "-c", "for i in 1 2 3; do seq 9999 | sort -r | tail -1; done"]
    else:
        command = [make_public(compile_c(what), tmp_path)]
        command += ["threads"] if what == "trouble.c" else []
    _is_right(judge(what, ["--", *command], user=user))


@pytest.fixture(scope="module")
def root() -> Iterator[Path]:
    """Debian's programs."""
    packages = load_experiment("doubles").root
    assert packages is not None
    with program_root(packages, Reporter()) as path:
        yield path


@_needs_tracepoints
@pytest.mark.regress
@pytest.mark.parametrize("program", _PROGRAMS)
def test_programs_of_debian(root: Path, program: str) -> None:
    _is_right(judge_script(program, _PROGRAMS[program], root))
