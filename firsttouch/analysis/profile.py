# SPDX-License-Identifier: GPL-2.0
"""Profiles: what each function of the kernel executed in a cell, and the calls that led to it.

pmu/README.md explains each count. All counts are exact: the instructions of
all functions sum up to those of the cell, and so do those of all stacks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from firsttouch.analysis.measurement import Case, Measurement
from firsttouch.tables import Fields, Json

INSTRUCTIONS = "instructions"
# Counts of a function, with their names in tables; the plugin gives the cache misses by call.
COUNTS: Mapping[str, str] = {
    INSTRUCTIONS: "instructions", "loads": "loads", "stores": "stores", "dc_zva": "DC ZVA",
    "tlbi": "TLBI", "dsb": "DSB", "isb": "ISB", "msr": "MSR", "atomics": "atomics",
    "l1d_misses": "L1D misses", "l2_misses": "L2 misses",
}  # fmt: skip
MISSES = ("l1d_misses", "l2_misses")
# Names that stand for what is no function of the kernel.
USER, UNKNOWN = "user code", "code without a symbol"


@dataclass(frozen=True, order=True)
class Frame:
    """A function in a stack, and how it was entered.

    `entered` is ``call``, ``tail_call``, ``exception`` or ``stack_switch``, a
    call on another stack.
    """

    function: str
    entered: str = "call"


# From the outermost function, which is `USER` or a task, to the one that ran.
Stack = tuple[Frame, ...]


@dataclass(frozen=True)
class Profile:
    """The counts of one cell, by function and by stack.

    `functions` has the counts named in `COUNTS`; user code has only its
    instructions. `stacks` has what the last function of each stack executed
    itself: instructions and, if they are valid, cache misses. `missing` says
    why others are not available.
    """

    functions: Mapping[str, Mapping[str, int]]
    stacks: Mapping[Stack, Mapping[str, int]]
    missing: Mapping[str, str]

    def total(self, count: str = INSTRUCTIONS) -> int:
        return sum(counts.get(count, 0) for name, counts in self.functions.items() if name != USER)


@dataclass(frozen=True)
class FunctionRow:
    """A function's count in each arm, per fault or operation of the first.

    `change` is that of the last arm against the first; None for a single arm.
    """

    function: str
    values: Mapping[str, float]
    change: float | None


def read_profile(measured: Measurement) -> Profile | None:
    """Return the profile of a result, all regions together; None if it was not asked for."""
    result = measured.result
    if result.counts is None or not result.cell.profile:
        return None
    functions: dict[str, dict[str, int]] = {USER: {INSTRUCTIONS: 0}}
    stacks: dict[Stack, dict[str, int]] = {}
    for region in result.counts.regions:
        table = Fields(f"the result of {result.cell.title}", region, "region")
        user = table.table("user").take("instructions", int)
        functions[USER][INSTRUCTIONS] += user
        _add(stacks.setdefault((Frame(USER),), {}), {INSTRUCTIONS: user})
        profile = table.table("profile")
        numbered = _read_functions(profile)
        for name, counts in numbered:
            if name != USER:
                _add(functions.setdefault(name, {}), counts)
        for stack, counts in _read_stacks(profile, [name for name, _ in numbered]):
            _add(stacks.setdefault(stack, {}), counts)
    missing = {name: measured.missing[name] for name in MISSES if name in measured.missing}
    for stack, counts in stacks.items():
        for name in missing:
            counts.pop(name, None)
        if stack[-1].function != USER:
            misses = {name: counts[name] for name in MISSES if name in counts}
            _add(functions.setdefault(stack[-1].function, {}), misses)
    return Profile(
        {name: counts for name, counts in functions.items() if any(counts.values())},
        {stack: counts for stack, counts in stacks.items() if any(counts.values())},
        missing,
    )


def profiles_of(case: Case) -> dict[str, Profile]:
    """Return the profiles of a case by arm; UserError if one is malformed."""
    profiles = {arm: read_profile(measured) for arm, measured in case.arms.items()}
    return {arm: profile for arm, profile in profiles.items() if profile is not None}


def system_calls(profile: Profile) -> dict[str, int]:
    """Return how often each system call of arm64 was made, by its name."""
    made: dict[str, int] = {}
    for stack, counts in profile.stacks.items():
        _, prefix, name = stack[-1].function.partition("__arm64_sys_")
        if prefix and counts.get("entries"):
            made[name] = made.get(name, 0) + counts["entries"]
    return made


def compare_functions(
    profiles: Mapping[str, Profile], units: float, count: str = INSTRUCTIONS
) -> tuple[FunctionRow, ...]:
    """Return a row for each function that has `count` in a profile, divided by `units`.

    `profiles` are by arm. The largest change comes first, or, if there is none, the largest value.
    """
    names = {name for profile in profiles.values() for name in profile.functions}
    rows = []
    for name in names:
        values = {
            arm: profile.functions.get(name, {}).get(count, 0) / units
            for arm, profile in profiles.items()
        }
        if any(values.values()):
            first, *others = values.values()
            rows.append(FunctionRow(name, values, others[-1] - first if others else None))
    return tuple(sorted(rows, key=_order))


def _order(row: FunctionRow) -> tuple[float, float, str]:
    # What rounds to no change is in the order of the values.
    return -abs(round(row.change or 0, 2)), -max(row.values.values()), row.function


def _add(to: dict[str, int], more: Mapping[str, int]) -> None:
    for name, value in more.items():
        to[name] = to.get(name, 0) + value


def _read_functions(profile: Fields) -> list[tuple[str, dict[str, int]]]:
    names = profile.strings("function_counts")
    functions = []
    for entry in profile.take("functions", list):
        name, *numbers = _entry(profile, "functions", entry, 1 + len(names))
        functions.append((str(name), dict(zip(names, _whole(profile, numbers), strict=True))))
    return functions


def _read_stacks(profile: Fields, functions: list[str]) -> Iterable[tuple[Stack, dict[str, int]]]:
    """Return each stack with what its last function executed itself."""
    names, entered_by = profile.strings("call_counts"), profile.strings("entered_by")
    stacks: list[Stack] = []
    for entry in profile.take("calls", list):
        numbers = _whole(profile, _entry(profile, "calls", entry, 3 + len(names)))
        above, function, entered = numbers[:3]
        # A call without one above it has its own number there.
        outer = stacks[above] if above < len(stacks) else ()
        stacks.append((*outer, Frame(functions[function], entered_by[entered])))
        yield stacks[-1], dict(zip(names, numbers[3:], strict=True))


def _entry(profile: Fields, key: str, entry: Json, length: int) -> list[Json]:
    if not isinstance(entry, list) or len(entry) != length:
        raise profile.error(key, f"has an entry that is not a list of {length}.")
    return entry


def _whole(profile: Fields, numbers: Iterable[Json]) -> list[int]:
    whole = [number for number in numbers if isinstance(number, int)]
    if len(whole) != len(list(numbers)):
        raise profile.error("functions or calls", "have a count that is not a whole number.")
    return whole
