# SPDX-License-Identifier: GPL-2.0
"""Two result sets side by side: first whether they may be compared, then what changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from firsttouch.errors import UserError
from firsttouch.quantities import format_size
from firsttouch.analysis.dataset import Case, Dataset, read_dataset
from firsttouch.lab.results import Result
from firsttouch.analysis.summary import change_percent

# What a comparison can be about, and what only disturbs it: a difference in
# the second kind can change counts that have nothing to do with the first.
_SUBJECTS = ("kernel", "machine", "kernel build", "kernel command line")
_INSTRUMENTS = ("ftbench", "PMU", "init", "QEMU", "compiler", "disk", "guest's commands")


@dataclass(frozen=True)
class Difference:
    """What is not the same in the two sets; `a` and `b` are what each has."""

    what: str
    a: str
    b: str


@dataclass(frozen=True)
class Line:
    """One metric of one cell in both sets; `change_percent` is b against a.

    A `release` or `machine` that is compared names both.
    """

    experiment: str
    params: dict[str, Any]
    arm: str
    release: str
    machine: str
    metric: str
    unit: str
    a: float
    b: float
    change_percent: float | None
    shown: bool


@dataclass(frozen=True)
class Comparison:
    """Two sets compared. `kind` is same, comparable, or with care."""

    kind: str
    sentence: str
    differences: list[Difference]
    lines: list[Line]
    common: int
    only_a: int
    only_b: int

    @property
    def contradictions(self) -> list[Line]:
        """What differs though nothing that decides it does: a run that was not identical."""
        return [line for line in self.lines if line.a != line.b] if self.kind == "same" else []

    def to_json(self) -> dict[str, Any]:
        """Return the comparison for programs."""
        return {"schema": 1, **asdict(self)}


_Key = tuple[Any, ...]
_Pair = tuple[Case, Result, Result]


def compare(first: Path, second: Path) -> Comparison:
    """Return how the results in two directories compare.

    Where each holds one release, or one machine, and these are not the same,
    that is what is compared. Raises UserError if a directory holds no results
    or the two have no cell in common.
    """
    a, b = read_dataset(first), read_dataset(second)
    ours, theirs = _cells(a, a, b), _cells(b, a, b)
    common = [key for key in ours if key in theirs]
    if not common:
        raise UserError(_nothing_in_common(first, second, a, b))
    pairs = [(*ours[key], theirs[key][1]) for key in common]
    differences = list(_differences(pairs))
    lines = [line for pair in pairs for line in _lines(*pair)]
    kind, sentence = _judge(differences, lines, len(common))
    return Comparison(
        kind, sentence, differences, lines, len(common),
        len(ours) - len(common), len(theirs) - len(common),
    )  # fmt: skip


def _cells(dataset: Dataset, a: Dataset, b: Dataset) -> dict[_Key, tuple[Case, Result]]:
    """Return the cells of `dataset` by what must be the same in both sets."""
    releases = _one_each({case.setting.release for case in a.cases},
                         {case.setting.release for case in b.cases})  # fmt: skip
    machines = _one_each({case.setting.machine for case in a.cases},
                         {case.setting.machine for case in b.cases})  # fmt: skip
    return {
        (
            "" if releases else case.setting.release,
            "" if machines else case.setting.machine,
            case.experiment.name,
            tuple(sorted(case.params.items())),
            arm,
        ): (case, result)
        for case in dataset.cases
        for arm, result in case.arms.items()
    }


def _one_each(a: set[str], b: set[str]) -> bool:
    return len(a) == len(b) == 1


def _differences(pairs: Iterable[_Pair]) -> Iterator[Difference]:
    """Return what differs between the cells of the pairs, each difference once."""
    found: dict[Difference, None] = {}
    for _, a, b in pairs:
        ours, theirs = _facts(a), _facts(b)
        for what, value in ours.items():
            if value != theirs[what]:
                found[Difference(what, value, theirs[what])] = None
    explained = {difference.what for difference in found} & {"kernel", "compiler"}
    for difference in found:
        # Another source or compiler is another build; that needs no second word.
        if difference.what != "kernel build" or not explained:
            yield difference


def _facts(result: Result) -> dict[str, str]:
    """Return what decided a result's outcome, in words or short hashes."""
    made = result["provenance"]
    files = made.get("files")
    program = files.get("/ftbench") if isinstance(files, dict) else None
    return {
        "kernel": str(result.get("kernel_version", "not recorded")),
        "machine": result["machine"],
        "kernel build": _short(made.get("image")),
        "kernel command line": str(made.get("boot", "not recorded")),
        "ftbench": _short(program),
        "init": _short(made.get("init")),
        "QEMU": str(made.get("qemu", "not recorded")),
        "compiler": str(made.get("gcc", "not recorded")),
        "disk": _short(made.get("disk")),
        "PMU": _short(made.get("pmu")),
        "guest's commands": _commands(made.get("commands")),
    }


def _commands(commands: object) -> str:
    """Return what a guest ran: its one command, or how many cells shared it."""
    if not isinstance(commands, list) or not commands:
        return "not recorded"
    return str(commands[0]) if len(commands) == 1 else f"{len(commands)} cells in one guest"


def _short(digest: object) -> str:
    return str(digest)[:12] if digest else "none"


def _lines(case: Case, a: Result, b: Result) -> Iterator[Line]:
    for metric in case.experiment.metrics:
        before, after = a["metrics"].get(metric.name), b["metrics"].get(metric.name)
        if before is not None and after is not None:
            yield Line(
                case.experiment.name, case.params, a["arm"],
                _both(a["release"], b["release"]), _both(a["machine"], b["machine"]),
                metric.name, metric.unit,
                before, after, change_percent(before, after), metric.shown,
            )  # fmt: skip


def _both(a: str, b: str) -> str:
    return a if a == b else f"{a} against {b}"


def _judge(differences: list[Difference], lines: list[Line], cells: int) -> tuple[str, str]:
    """Return the kind of the comparison and the sentence that says it."""
    common = "1 cell" if cells == 1 else f"{cells:,} cells"
    if not differences:
        unequal = sum(line.a != line.b for line in lines)
        outcome = (
            f"but {unequal:,} of {len(lines):,} figures differ: these runs were not identical"
            if unequal
            else f"and all {len(lines):,} figures are equal"
        )
        return "same", f"The same: {common} made from the same parts, {outcome}."
    named = _named(differences)
    kinds = {difference.what for difference in differences}
    if len(kinds) == 1 and kinds <= set(_SUBJECTS):
        return (
            "comparable",
            f"Comparable: {common} in common that differ in the {named}; "
            "what changes below comes from that.",
        )
    return (
        "with care",
        f"Comparable with care: {common} in common, but they differ in the {named}; "
        "what changes below may come from any of these.",
    )


def _named(differences: list[Difference]) -> str:
    """Return the kinds of the differences, in order of weight: ``kernel, QEMU``."""
    kinds = {difference.what for difference in differences}
    return ", ".join(what for what in (*_SUBJECTS, *_INSTRUMENTS) if what in kinds)


def _nothing_in_common(first: Path, second: Path, a: Dataset, b: Dataset) -> str:
    """Say why no cell of the one set is a cell of the other."""
    sentence = f"{first} and {second} are not comparable: they have no cell in common"
    for what in ("experiment", "arm", "size"):
        ours, theirs = _having(a, what), _having(b, what)
        if ours and theirs and not ours & theirs:
            return (
                f"{sentence}, for one has {what} {', '.join(sorted(ours))} and the other "
                f"{', '.join(sorted(theirs))}; measure the same on both sides."
            )
    return f"{sentence}; measure the same experiments with the same --size on both sides."


def _having(dataset: Dataset, what: str) -> set[str]:
    if what == "experiment":
        return {case.experiment.name for case in dataset.cases}
    if what == "arm":
        return {arm for case in dataset.cases for arm in case.arms}
    return {
        format_size(int(case.params["size"])) for case in dataset.cases if "size" in case.params
    }
