# SPDX-License-Identifier: GPL-2.0
"""`firsttouch export` of a trace: each fault once, with its kind."""

import os
from collections import Counter

import pytest

from tests.conftest import Firsttouch
from tests.trace.conftest import Compile, run_trace


@pytest.mark.long
def test_folded_stacks_have_all_faults_by_kind(firsttouch: Firsttouch, compile_c: Compile) -> None:
    program = compile_c("kinds.c", "-fno-omit-frame-pointer")
    expected = dict(run_trace(firsttouch, "--", program).fault_kinds)

    done = firsttouch("export", "--format", "svg", "--out", "pictures", "out")
    assert done.stdout == "pictures/faults.svg\n", done.stderr
    assert "<title>main: " in (firsttouch.directory / "pictures/faults.svg").read_text()

    done = firsttouch("export", "--format", "folded", "out")
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.rsplit(" ", 1) for line in done.stdout.splitlines()]
    stacks = [(stack.split(";"), int(count)) for stack, count in lines]
    counted: Counter[str] = Counter()
    for stack, count in stacks:
        counted[stack[-1].strip("[]")] += count
    assert counted == expected
    assert any(stack[-3:-1] == ["main", "shared"] for stack, _ in stacks)
    # Whoever calls execve is gone when it makes the new program's stack.
    in_kernel = [stack for stack, _ in stacks if stack[-1] == "[in the kernel]"]
    assert not any("[unknown code]" in stack for stack in in_kernel)
    if os.geteuid() == 0:
        assert ["execve(2)", "[in the kernel]"] in in_kernel
