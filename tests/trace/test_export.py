# SPDX-License-Identifier: GPL-2.0
"""`firsttouch export` of a trace: each format has each fault once, with its kind."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable

import pytest

from firsttouch.finder.document import FILE_NAME, read_trace
from firsttouch.trace.recording import DATA_FILE
from tests.conftest import Firsttouch
from tests.trace.conftest import Compile


def _kinds(faults: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Return the sums by kind, which stands in brackets in stacks."""
    counts: Counter[str] = Counter()
    for kind, count in faults:
        counts[kind.removeprefix("[").removesuffix("]")] += count
    return dict(counts)


@pytest.mark.long
def test_each_format_has_all_faults_by_kind(firsttouch: Firsttouch, compile_c: Compile) -> None:
    program = compile_c("kinds.c", "-fno-omit-frame-pointer")
    done = firsttouch("trace", "--out", "out", "--", program)
    assert done.returncode == 0, done.stderr
    expected = dict(read_trace(firsttouch.directory / "out" / FILE_NAME).fault_kinds)

    def exported(form: str) -> str:
        done = firsttouch("export", "--format", form, "out")
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    lines = [line.rsplit(" ", 1) for line in exported("folded").splitlines()]
    stacks = [(stack.split(";"), int(count)) for stack, count in lines]
    assert _kinds((stack[-1], count) for stack, count in stacks) == expected
    assert any(stack[-3:-1] == ["main", "shared"] for stack, _ in stacks)
    # Whoever calls execve is gone when it makes the new program's stack.
    in_kernel = [stack for stack, _ in stacks if stack[-1] == "[in the kernel]"]
    assert not any("[unknown code]" in stack for stack in in_kernel)
    if os.geteuid() == 0:
        assert ["execve(2)", "[in the kernel]"] in in_kernel

    speedscope = json.loads(exported("speedscope"))
    names = [frame["name"] for frame in speedscope["shared"]["frames"]]
    (profile,) = speedscope["profiles"]
    assert profile["endValue"] == sum(expected.values()) == sum(profile["weights"])
    samples = zip(profile["samples"], profile["weights"], strict=True)
    assert sorted(([names[i] for i in sample], n) for sample, n in samples) == sorted(stacks)

    events = json.loads(exported("perfetto"))["traceEvents"]
    counters = [event for event in events if event["ph"] == "C"]
    counted = _kinds((event["name"], event["args"]["faults"]) for event in counters)
    assert counted == expected
    last = {event["name"]: event for event in counters}
    assert [event["ts"] for event in counters] == sorted(event["ts"] for event in counters)
    assert set(last) == set(expected)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "out has a trace: give --format folded, speedscope or perfetto."),
        (("--format", "csv"), "out has a trace: give --format folded, speedscope or perfetto."),
        (("--format", "folded", "--experiment", "populate"), "a trace has none."),
        (("--format", "speedscope"), "out/trace.data is no trace"),
    ],
)
def test_what_a_trace_cannot_give_is_refused(
    firsttouch: Firsttouch, words: tuple[str, ...], said: str
) -> None:
    (firsttouch.directory / "out").mkdir()
    (firsttouch.directory / "out" / DATA_FILE).write_text("no recording")
    done = firsttouch("export", *words, "out")
    assert (done.returncode, done.stdout) == (2, "")
    assert said in " ".join(done.stderr.split())
