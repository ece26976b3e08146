# SPDX-License-Identifier: GPL-2.0
"""What a second fault costs: in time as a survey measured it, in instructions as the lab did."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from firsttouch.analysis.dataset import read_dataset
from firsttouch.catalog.arms import BASE
from firsttouch.finder.sites import Price, Trace
from firsttouch.lab.results import FILE_NAME as RESULTS
from firsttouch.survey.document import read_survey
from firsttouch.survey.findings import examine

_SURVEY = "survey.json"
_ABOVE_FLOOR = "kernel_above_floor"
# A survey's names of architectures.
_ARCHITECTURES = {"x86_64": "x86-64", "aarch64": "arm64"}


def price(trace: Trace, directory: Path) -> tuple[Price, ...]:
    """Return the prices that the results in `directory` give; none without any."""
    return (*_surveyed(trace, directory / _SURVEY), *_counted(trace, directory))


def _surveyed(trace: Trace, file: Path) -> Iterator[Price]:
    """Yield the time that a load and a store of a page take beyond a store alone."""
    if not file.is_file():
        return
    findings = examine(read_survey(file))
    if findings.host.architecture != _ARCHITECTURES[trace.machine]:
        return
    one, both = findings.touch("store"), findings.touch("load-store")
    if one and both and one.busy and both.busy and not findings.virtual_time:
        each = both.busy.median - one.busy.median
        if each > 0:
            yield Price(each, "ns", f"measured by the survey in {file}")


def _counted(trace: Trace, directory: Path) -> Iterator[Price]:
    """Yield the kernel instructions that the same take in the laboratory, which is arm64's."""
    if trace.machine != "aarch64" or not (directory / RESULTS).is_file():
        return
    for row in read_dataset(directory).rows:
        wanted = {"by": "load-store", "page": "4k"}.items() <= row.case.params.items()
        if wanted and row.metric == _ABOVE_FLOOR and (each := row.arms.get(BASE)):
            yield Price(
                each, "instructions of the kernel", f"counted by the lab, {row.case.platform}"
            )
