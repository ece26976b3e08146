# SPDX-License-Identifier: GPL-2.0
"""KTAP, the kernel's test output: which test passed, failed or was skipped, and why.

Format: Documentation/dev-tools/ktap.rst of the kernel, version 1, as KUnit
and the kselftests print it. Lines of a kernel log that are not KTAP are
ignored.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

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


@dataclass
class _Level:
    """The results of one depth, which wait for their parent's name, and how many are to come."""

    cases: list[Case] = field(default_factory=list)
    planned: int | None = None
    seen: int = 0


def parse(lines: Iterable[str]) -> list[Case]:
    """Return the innermost tests of some KTAP, in the order in which they ended.

    A plan that was not fulfilled yields a failed case that says how many
    results are missing, so that a suite that died is not taken for a short
    one. A summary of tests that are listed themselves yields nothing.
    """
    levels = [_Level()]
    for raw in lines:
        line = _STAMP.sub("", raw.rstrip())
        depth = (len(line) - len(line.lstrip(" "))) // 4
        text = line.strip()
        if _VERSION.match(text):
            # A version line opens the level below the results that follow it.
            while len(levels) <= depth:
                levels.append(_Level())
        elif plan := _PLAN.match(text):
            if depth < len(levels):
                levels[depth].planned = int(plan[1])
        elif (result := _RESULT.match(text)) and depth < len(levels):
            children = _close(levels, depth + 1)
            levels[depth].seen += 1
            name = result["name"].strip() or result["number"]
            case = Case(name, _outcome(result), (result["rest"] or "").strip())
            levels[depth].cases += (
                [Case(f"{name}/{child.name}", child.outcome, child.why) for child in children]
                if children
                else [case]
            )
    return _close(levels, 0)


def _close(levels: list[_Level], depth: int) -> list[Case]:
    """Close all levels from `depth` on; return their cases, outer names not yet put before them."""
    cases: list[Case] = []
    while len(levels) > depth:
        level = levels.pop()
        cases = level.cases + cases
        if level.planned is not None and level.seen < level.planned:
            why = f"{level.planned - level.seen} of {level.planned} results are missing"
            cases.append(Case("plan", "failed", why))
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
