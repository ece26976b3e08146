# SPDX-License-Identifier: GPL-2.0
"""When a suite that ran in a guest has passed: never if it printed nothing."""

from collections.abc import Collection, Mapping, Sequence

from tests.support.ktap import Case
from tests.support.objections import names

# A test by its command and its place among those that the command reports.
Place = tuple[str, int]


def complaints(cases: Sequence[Case], wanted: Collection[str] = ()) -> list[str]:
    """Return what is wrong with the outcome of a suite, which must report the `wanted` tests."""
    passed = [case.name for case in cases if case.outcome == "passed"]
    wrong = [f"{case.name}: {case.why}" for case in cases if case.outcome == "failed"]
    if not passed:
        wrong.append("every test was skipped or failed" if cases else "no test was reported")
    wrong += [
        f"{name!r}, an answer of docs/project/objections.md, was not reported as passed"
        for name in sorted(wanted)
        if not any(names(name, test) for test in passed)
    ]
    return wrong


def silent(cases: Mapping[Place, Case]) -> bool:
    """Tell whether nothing passed and nothing was skipped: a guest or a program that is broken."""
    return all(case.outcome == "failed" for case in cases.values())


def worse(before: Mapping[Place, Case], after: Mapping[Place, Case]) -> list[str]:
    """Return the names of the tests that passed before and do not now."""
    return [
        case.name
        for place, case in before.items()
        if case.outcome == "passed" and (place not in after or after[place].outcome != "passed")
    ]
