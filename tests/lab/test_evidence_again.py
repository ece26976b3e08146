# SPDX-License-Identifier: GPL-2.0
"""The committed raw results are what this checkout measures: a few cells of them, run again."""

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from docs.evidence.draw.sets import load_sets
from firsttouch.lab.results import Result, read_results
from firsttouch.tables import Json
from tests.conftest import Firsttouch
from tests.support.kernels import releases_with_stock

pytestmark = pytest.mark.kernel

# A few cells that take seconds, by the set that has them: the double fault, huge pages, the boot,
# and orders of touches. What boots linux/ is in the sets that were measured with it.
_AGAIN = {
    "6.12": (("default", "--experiment", "populate", "--set", "by=ldadd", "--set", "page=4k"),),
    "7.3": (
        ("default", "--experiment", "populate", "--set", "by=ldxr", "--set", "page=2m"),
        ("default", "--experiment", "boot"),
    ),
}
# What QEMU's and the compiler's version do not change: docs/explanation/identical-runs.md.
_ALIKE = ("page_faults", "thp_fault_alloc")


@pytest.mark.parametrize("release", releases_with_stock())
def test_cells_measured_again_are_those_of_the_evidence(
    firsttouch: Firsttouch, own_outcomes: Callable[[str], Mapping[str, str]], release: str
) -> None:
    """Every count, where all that decides one is the same; else faults, and what differs is said.

    An image that was built anew of the same source by the same compiler is
    another one because linux/ changed: `make evidence MEASURE=1` is due.
    """
    for number, (name, *words) in enumerate(_AGAIN[release]):
        measured_before = read_results(load_sets()[name].file(release))
        before = {result.cell.identity: result for result in measured_before}
        if name == "default":
            words += ["--arm", "stock"]
        out = Path(f"again-{number}")
        store = own_outcomes(f"store-{number}")
        done = firsttouch("lab", "--release", release, *words, "--out", out, **store)
        assert done.returncode == 0, done.stderr
        assert "Measuring: done" in done.stderr
        measured = read_results(firsttouch.directory / out)
        assert measured
        for result in measured:
            _check(before[result.cell.identity], result)


def _check(before: Result, again: Result) -> None:
    ours, theirs = before.provenance, again.provenance
    # The same cell of the same plan, however it was built.
    assert (ours.boot, ours.commands, ours.command) == (
        theirs.boot, theirs.commands, theirs.command,
    )  # fmt: skip
    other = sorted(
        name
        for name in ours.digests.keys() | theirs.digests.keys()
        if ours.digests.get(name) != theirs.digests.get(name)
    )
    if not other:
        assert again.key == before.key
        assert (again.lines, again.counts) == (before.lines, before.counts), before.cell.title
        return
    warnings.warn(
        f"{before.cell.title}: not measured with the same {', '.join(other)} as docs/evidence "
        f"({ours.kernel_version}, {ours.qemu}, {ours.compiler}), so only faults are compared; "
        "`make evidence MEASURE=1` measures all again",
        stacklevel=2,
    )
    assert _metrics(again).keys() == _metrics(before).keys(), before.cell.title
    for metric in _ALIKE:
        assert _metrics(again).get(metric) == _metrics(before).get(metric), (
            f"{before.cell.title}: {metric}"
        )


def _metrics(result: Result) -> Mapping[str, Json]:
    metrics = result.lines[-1]["metrics"]
    assert isinstance(metrics, Mapping)
    return metrics
