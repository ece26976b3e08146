# SPDX-License-Identifier: GPL-2.0
"""The times of `lab --time` as a figure of the report."""

from collections.abc import Mapping
from dataclasses import replace

from firsttouch.analysis.dataset import make_dataset
from firsttouch.catalog.arms import arm_names
from firsttouch.catalog.collection import load_catalog
from firsttouch.lab.results import Boot
from firsttouch.tables import Json
from firsttouch.views.html.figures import times_figure
from firsttouch.views.html.page import render
from firsttouch.vm.host import Condition
from tests.support.results import make_result
from tests.support.surveys import HOST

_CATALOG = load_catalog((), (), arm_names())


def test_times_are_drawn() -> None:
    quiet = Condition(0.1, 2_400_000, "performance", 0)
    host = replace(HOST, processor="Cortex-A76", before=quiet)
    results = []
    for arm, time in (("stock", 2e6), ("again", 2e6), ("on", 1e6)):
        made = make_result({}, arm, params={"by": "ldadd", "size": 4096})
        lines: list[Mapping[str, Json]] = [
            {"round": number, "metrics": {"elapsed_ns": time + number}, "unavailable": {}}
            for number in range(1, 9)
        ]
        provenance = replace(made.provenance, host=host, digests={"kernel image": "a" * 64})
        boots = tuple(Boot(number, "0x1", 4.0, quiet) for number in range(1, 9))
        results.append(replace(made, lines=tuple(lines), boots=boots, provenance=provenance))
    figure = times_figure("this run", tuple(results), _CATALOG)
    assert "on against stock: 1 of 1 cells take less time" in figure.caption
    assert figure.table
    assert figure.table.rows[0] == (
        "populate 4 KiB", "+0.0 % (+0.0 to +0.0) none", "-50.0 % (-50.0 to -50.0)",
    )  # fmt: skip
    dataset = make_dataset((), _CATALOG)
    page = render(dataset, [figure])
    assert 'id="hardware"' in page and "Times on Cortex-A76" in page
    assert 'id="hardware"' not in render(dataset)
