# SPDX-License-Identifier: GPL-2.0
"""The kernel's own word on each fault: no double is false, and none is missed without a reason.

tests/trace/test_guest.py has the same for arm64, where QEMU's log is the reference.
"""

import os
import platform
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.evidence.draw.predicted import program_root
from firsttouch.catalog.experiments import load_experiment
from firsttouch.progress import Reporter
from tests.trace.conftest import Compile, make_public
from tests.trace.oracle import Verdict, judge, judge_script

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
