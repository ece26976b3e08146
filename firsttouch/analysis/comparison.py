# SPDX-License-Identifier: GPL-2.0
"""Compares two sets of results: first whether they are comparable, then what changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from firsttouch.analysis.cases import Case
from firsttouch.analysis.dataset import Dataset
from firsttouch.analysis.measurement import Measurement
from firsttouch.analysis.verdicts import change_percent
from firsttouch.catalog.experiments import Params, Value
from firsttouch.errors import UserError
from firsttouch.quantities import format_size

# What a comparison can be about. Anything else is an instrument; a difference in
# an instrument can change counts for reasons that are not in the kernel.
_SUBJECTS = ("kernel", "machine", "kernel source", "kernel build", "kernel command line")
# Names in a comparison of digests whose names in the provenance are other ones.
_DIGESTS = {"kernel image": "kernel build", "QEMU": "QEMU's program"}
# Differences that follow from another difference, and are not listed beside it.
_FOLLOWS = {
    "kernel source": {"kernel"},
    "kernel build": {"kernel", "kernel source", "compiler"},
    "device tree": {"machine"},
    "initial RAM disk": {"ftbench", "init", "guest's commands"},
    "QEMU's program": {"QEMU"},
}
_SHORT = 12


@dataclass(frozen=True)
class Difference:
    """What differs between the two sets; `a` and `b` are the values in each."""

    what: str
    a: str
    b: str


@dataclass(frozen=True)
class Line:
    """One metric of one cell in both sets; `change_percent` is b against a.

    `release` and `machine` name both sets' values if these differ.
    """

    experiment: str
    params: Params
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
    """The comparison of two sets. `kind` is same, comparable, or with care."""

    kind: str
    sentence: str
    differences: tuple[Difference, ...]
    lines: tuple[Line, ...]
    common: int
    only_a: int
    only_b: int

    @property
    def contradictions(self) -> list[Line]:
        """Figures that differ although all inputs are the same: the runs were not identical."""
        return [line for line in self.lines if line.a != line.b] if self.kind == "same" else []


@dataclass(frozen=True)
class _Key:
    """What identifies a cell in both sets."""

    release: str
    machine: str
    experiment: str
    params: tuple[tuple[str, Value], ...]
    arm: str


@dataclass(frozen=True)
class _Pair:
    case: Case
    a: Measurement
    b: Measurement


def compare(a: Dataset, b: Dataset) -> Comparison:
    """Return the comparison of two sets.

    If each set has only one release, the releases may differ; so may the
    machines. Raises UserError if the sets have no cell in common.
    """
    releases = _one_each(
        {case.platform.release for case in a.cases}, {case.platform.release for case in b.cases}
    )
    machines = _one_each(
        {case.platform.machine for case in a.cases}, {case.platform.machine for case in b.cases}
    )
    ours = _cells(a, releases=releases, machines=machines)
    theirs = _cells(b, releases=releases, machines=machines)
    pairs = [
        _Pair(case, measured, theirs[key][1])
        for key, (case, measured) in ours.items()
        if key in theirs
    ]
    if not pairs:
        raise UserError(_nothing_in_common(a, b))
    differences = tuple(_differences(pairs))
    lines = tuple(line for pair in pairs for line in _lines(pair))
    kind, sentence = _judge(differences, lines, len(pairs))
    return Comparison(
        kind, sentence, differences, lines, len(pairs),
        len(ours) - len(pairs), len(theirs) - len(pairs),
    )  # fmt: skip


def _one_each(a: set[str], b: set[str]) -> bool:
    return len(a) == len(b) == 1


def _cells(
    dataset: Dataset, *, releases: bool, machines: bool
) -> dict[_Key, tuple[Case, Measurement]]:
    """Return the cells by key; keys leave out the release, or the machine, if these may differ."""
    return {
        _Key(
            "" if releases else case.platform.release,
            "" if machines else case.platform.machine,
            case.experiment.name,
            tuple(sorted(case.params.items())),
            arm,
        ): (case, measured)
        for case in dataset.cases
        for arm, measured in case.arms.items()
    }


def _differences(pairs: Iterable[_Pair]) -> Iterator[Difference]:
    """Return what differs between the cells of the pairs, each difference once."""
    found: dict[Difference, None] = {}
    for pair in pairs:
        ours, theirs = _facts(pair.a), _facts(pair.b)
        for what in dict.fromkeys([*ours, *theirs]):
            one, other = ours.get(what, "none"), theirs.get(what, "none")
            if one != other:
                found[Difference(what, one, other)] = None
    named = {difference.what for difference in found}
    for difference in found:
        if not _FOLLOWS.get(difference.what, set()) & named:
            yield difference


def _facts(measured: Measurement) -> dict[str, str]:
    """Return what decided a result: versions and names, and short digests."""
    made = measured.result.provenance
    commands = made.commands
    digests = {
        _DIGESTS.get(name, name): digest[:_SHORT] for name, digest in sorted(made.digests.items())
    }
    return {
        "kernel": made.kernel_version,
        "machine": measured.result.cell.machine,
        "kernel command line": made.boot,
        "QEMU": made.qemu,
        "compiler": made.compiler,
        **digests,
        "guest's commands": (
            commands[0] if len(commands) == 1 else f"{len(commands)} cells in one guest"
        ),
    }


def _lines(pair: _Pair) -> Iterator[Line]:
    one, other = pair.a.result.cell, pair.b.result.cell
    for metric in pair.case.experiment.metrics:
        before, after = pair.a.metrics.get(metric.name), pair.b.metrics.get(metric.name)
        if before is not None and after is not None:
            yield Line(
                pair.case.experiment.name, pair.case.params, one.arm,
                _both(one.release, other.release), _both(one.machine, other.machine),
                metric.name, metric.unit,
                before, after, change_percent(before, after), metric.shown,
            )  # fmt: skip


def _both(a: str, b: str) -> str:
    return a if a == b else f"{a} against {b}"


def _judge(
    differences: Iterable[Difference], lines: tuple[Line, ...], cells: int
) -> tuple[str, str]:
    """Return the kind of the comparison and its sentence for people."""
    common = "1 cell" if cells == 1 else f"{cells:,} cells"
    kinds = {difference.what for difference in differences}
    if not kinds:
        unequal = sum(line.a != line.b for line in lines)
        outcome = (
            f"but {unequal:,} of {len(lines):,} figures differ: these runs were not identical"
            if unequal
            else f"and all {len(lines):,} figures are equal"
        )
        return "same", f"The same: {common} made from the same parts, {outcome}."
    subjects = [what for what in _SUBJECTS if what in kinds]
    named = ", ".join([*subjects, *sorted(kinds.difference(subjects))])
    if len(kinds) == 1 and subjects:
        return (
            "comparable",
            f"Comparable: {common} in common that differ in the {named}; "
            "the changes below come from that.",
        )
    return (
        "with care",
        f"Comparable with care: {common} in common, but they differ in the {named}; "
        "the changes below may come from any of these.",
    )


def _nothing_in_common(a: Dataset, b: Dataset) -> str:
    """Return why the sets have no cell in common, and what to do."""
    sentence = "A and B are not comparable: they have no cell in common"
    for what, ours, theirs in (
        ("experiment", _experiments(a), _experiments(b)),
        ("arm", set(a.arms(a.cases)), set(b.arms(b.cases))),
        ("size", _sizes(a), _sizes(b)),
    ):
        if ours and theirs and not ours & theirs:
            return (
                f"{sentence}, because A has {what} {', '.join(sorted(ours))} and B "
                f"{', '.join(sorted(theirs))}; measure the same on both sides."
            )
    return f"{sentence}; measure the same experiments with the same --size on both sides."


def _experiments(dataset: Dataset) -> set[str]:
    return {case.experiment.name for case in dataset.cases}


def _sizes(dataset: Dataset) -> set[str]:
    return {format_size(size) for case in dataset.cases if (size := case.number("size"))}
