# SPDX-License-Identifier: GPL-2.0
"""Metrics from a result: what was not seen is absent, never zero."""

from collections.abc import Mapping, Sequence

import pytest

from firsttouch.analysis.measurement import Measurement, measure
from firsttouch.catalog.contract import COUNTED
from firsttouch.catalog.experiments import Params, load_experiment
from firsttouch.errors import UserError
from firsttouch.tables import Json
from tests.support.results import make_region, make_result

_CACHES = {"l1d_accesses", "l1d_misses", "l2_accesses", "l2_misses"}


def _measure(
    *regions: Mapping[str, Json], not_modelled: Sequence[str] = (), **metrics: float
) -> Measurement:
    result = make_result(metrics, regions=regions, not_modelled=not_modelled)
    return measure(result, load_experiment("populate"))


def test_both_privileges_are_in_the_metrics() -> None:
    metrics = _measure(make_region(), page_faults=1).metrics
    assert metrics == {
        "page_faults": 1, "instructions_user": 3, "instructions_kernel": 3, "tlbi": 4,
        "tlbi_broadcast": 3, "tlbi_local": 1, "tlbi_answers": 0, "ipi": 0, "aborts": 4,
        "fault_retries": 3, "dsb": 6, "isb": 4, "l1d_accesses": 6, "l1d_misses": 4,
        "l2_accesses": 6, "l2_misses": 4,
    }  # fmt: skip
    # Regions of a cell are added up.
    metrics = _measure(make_region(), make_region({"instructions": 10})).metrics
    assert (metrics["instructions_user"], metrics["instructions_kernel"]) == (13, 6)


def test_counting_alone_gives_no_cache_metrics() -> None:
    measured = _measure(make_region(caches=False))
    assert sorted(measured.metrics) == sorted([*COUNTED, "tlbi_answers"])
    assert not _CACHES & measured.missing.keys()


@pytest.mark.parametrize(
    ("changed", "not_modelled"),
    [
        ({"dc_zva": 5}, ["dc_zva_lines"]),
        ({"dc_zva": 5, "dc_zva_unplaced": 2}, []),
        ({"untranslated_accesses": 7}, []),
    ],
)
def test_what_was_not_seen_is_absent_and_not_zero(
    changed: Mapping[str, Json], not_modelled: Sequence[str]
) -> None:
    measured = _measure(make_region(changed), not_modelled=not_modelled)
    assert measured.metrics["instructions_user"] == 3
    assert not _CACHES & measured.metrics.keys()
    # One reason without a number, so that cells share a row of what is not available.
    words = "QEMU did not show the addresses of all accesses"
    assert {measured.missing[name] for name in _CACHES} == {words}


def test_a_few_unseen_of_many_do_not_matter() -> None:
    many: Json = {"accesses": 50_000, "misses": 20, "writebacks": 0}
    for unseen, shown in ((5, True), (6, False)):
        region = make_region({"dc_zva": unseen, "l1d": many})
        metrics = _measure(region, not_modelled=["dc_zva_lines"]).metrics
        assert metrics.get("l1d_misses") == (22 if shown else None)


def test_a_region_without_dc_zva_is_whole_on_an_old_qemu() -> None:
    measured = _measure(make_region(), not_modelled=["dc_zva_lines"])
    assert "l2_misses" in measured.metrics
    assert not _CACHES & measured.missing.keys()


def test_each_metric_that_is_not_there_has_its_reason() -> None:
    experiment = load_experiment("populate")
    measured = measure(make_result({"page_faults": 1}, unavailable={"tlbi": "no PMU"}), experiment)
    assert measured.missing["tlbi"] == "no PMU"
    assert "neither ftbench nor the PMU" in measured.missing["thp_fault_alloc"]
    whole = measure(make_result({}, unavailable={"page_faults": "no CASP"}), experiment)
    assert set(whole.missing.values()) == {"no CASP"}
    assert whole.missing.keys() >= {metric.name for metric in experiment.metrics}


def test_faults_one_by_one_are_read() -> None:
    made = make_result({"page_faults": 1})
    line = {**made.lines[0], "timeline": [[5, 0, 0], [9, 0, 1]], "timeline_lost": 3}
    result = type(made)(made.key, made.cell, (line,), made.counts, made.provenance)
    timeline = measure(result, load_experiment("populate")).timeline
    assert timeline == ((5, 0), (9, 0))


def test_a_result_without_lines_is_none() -> None:
    made = make_result()
    empty = type(made)(made.key, made.cell, (), made.counts, made.provenance)
    with pytest.raises(UserError, match="printed nothing"):
        measure(empty, load_experiment("populate"))


def test_cpus_that_answer_are_counted_and_what_their_turns_hide_is_absent() -> None:
    metrics = {"page_faults": 4}
    params: Params = {"by": "ldadd", "page": "4k", "size": 4 << 20, "cpus": 4}
    result = make_result(
        metrics, experiment="several-cpus", params=params, regions=[make_region(caches=False)]
    )
    measured = measure(result, load_experiment("several-cpus"))
    assert (result.cell.cpus, measured.metrics["tlbi_answers"]) == (4, 3 * 3)
    assert measured.metrics["fault_retries"] == 0
    assert "lock_waits" not in measured.metrics
    assert "for a whole tick: no CPU waits for a lock" in measured.missing["lock_waits"]


def test_faults_without_an_exception_leave_no_retries_to_count() -> None:
    measured = _measure(make_region(), page_faults=5)
    assert "fault_retries" not in measured.metrics
    assert "without an exception" in measured.missing["fault_retries"]
