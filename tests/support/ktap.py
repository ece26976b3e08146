# SPDX-License-Identifier: GPL-2.0
"""KTAP, the kernel's test output: which test passed, failed or was skipped, and why.

Format: Documentation/dev-tools/ktap.rst of the kernel, version 1, as KUnit
and the kselftests print it. Lines of a kernel log that are not KTAP are
ignored.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

_STAMP = re.compile(r"^\[ *\d+\.\d+\](?:\[[^]]*\])? ")
_VERSION = re.compile(r"(?:K)?TAP version \d+$")
_PLAN = re.compile(r"1\.\.(\d+)(?: *#.*)?$")
_RESULT = re.compile(
    r"(?P<not>not )?ok (?P<number>\d+)(?: -)? ?(?P<name>[^#]*?)"
    r"(?: *# *(?P<word>SKIP|TODO|XFAIL|TIMEOUT|ERROR)?(?P<rest>.*))?$"
)


@dataclass(frozen=True)
class Case:
    """One test: its full name (suite/test/parameter), `passed`, `failed` or `skipped`, and why."""

    name: str
    outcome: str
    why: str = ""


def parse(lines: Iterable[str]) -> list[Case]:
    """Return the innermost tests of some KTAP, in the order in which they ended.

    A plan that was not fulfilled yields a failed case that says how many
    results are missing, so that a suite that died is not taken for a short
    one. A summary of tests that are listed themselves yields nothing.
    """
    # One list per level of nesting: the cases that wait for their parent's name.
    levels: list[list[Case]] = [[]]
    planned: list[int | None] = [None]
    seen: list[int] = [0]
    for raw in lines:
        line = _STAMP.sub("", raw.rstrip())
        depth = (len(line) - len(line.lstrip(" "))) // 4
        text = line.strip()
        if _VERSION.match(text):
            # A version line opens the level below the results that follow it.
            while len(levels) <= depth:
                _push(levels, planned, seen)
        elif plan := _PLAN.match(text):
            if depth < len(levels):
                planned[depth] = int(plan[1])
        elif (result := _RESULT.match(text)) and depth < len(levels):
            children = _pop_below(levels, planned, seen, depth)
            seen[depth] += 1
            name = result["name"].strip() or result["number"]
            case = Case(name, _outcome(result), (result["rest"] or "").strip())
            levels[depth] += (
                [Case(f"{name}/{child.name}", child.outcome, child.why) for child in children]
                if children
                else [case]
            )
    return _pop_below(levels, planned, seen, -1)


def _push(levels: list[list[Case]], planned: list[int | None], seen: list[int]) -> None:
    levels.append([])
    planned.append(None)
    seen.append(0)


def _pop_below(
    levels: list[list[Case]], planned: list[int | None], seen: list[int], depth: int
) -> list[Case]:
    """Close all levels below `depth`; return their cases, outer names not yet put before them."""
    cases: list[Case] = []
    while len(levels) > depth + 1:
        here, plan, got = levels.pop(), planned.pop(), seen.pop()
        cases = here + cases
        if plan is not None and got < plan:
            cases.append(Case("plan", "failed", f"{plan - got} of {plan} results are missing"))
    if depth < 0:
        _push(levels, planned, seen)
    return cases


def _outcome(result: re.Match[str]) -> str:
    if result["word"] == "SKIP":
        return "skipped"
    # An expected failure is what the test expects.
    return "failed" if result["not"] and result["word"] != "XFAIL" else "passed"


def show(cases: list[Case]) -> None:
    """Print each case, for the report of a test that fails."""
    for case in cases:
        print(f"{case.outcome:8}{case.name} {case.why}")
