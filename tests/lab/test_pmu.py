# SPDX-License-Identifier: GPL-2.0
"""The PMU's regions as metrics, and joined to what a guest's programs print."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from firsttouch.analysis.summary import summarize
from rich.console import Console

from firsttouch.analysis import cache_statistics as cache_digest
from firsttouch.build.sources import KernelSource
from firsttouch.errors import GuestError
from firsttouch.lab.plan import Request, make_plan
from firsttouch.lab.results import ResultStore
from firsttouch.lab.run import build_parts, run_cells
from firsttouch.progress import Reporter
from firsttouch.vm import guest
from firsttouch.vm.pmu import region_metrics

_EVENTS = (
    "instructions", "dsb", "dc_zva", "dc_zva_unplaced", "untranslated_accesses",
)  # fmt: skip


def _region(changed: dict[str, Any] | None = None, *, caches: bool = True) -> dict[str, Any]:
    """A region as the plugin writes it, where everything happened three times."""
    side: dict[str, Any] = {**dict.fromkeys(_EVENTS, 0), "instructions": 3, "dsb": 3}
    if caches:
        level = {"accesses": 3, "misses": 2, "writebacks": 0}
        side |= {"l1d": level, "l2": level}
    return {
        "user": {**side, **(changed or {})},
        "kernel": side,
        "tlbi": {"total": 4, "by_kind": {"vae1is": 4}},
        "dc_zva_modelled": True,
    }


def test_both_privileges_are_in_the_metrics() -> None:
    assert region_metrics(_region()) == (
        {
            "instructions_user": 3, "instructions_kernel": 3, "tlbi": 4, "dsb": 6,
            "l1d_accesses": 6, "l1d_misses": 4, "l2_accesses": 6, "l2_misses": 4,
        },
        {},
    )  # fmt: skip


def test_counting_alone_gives_no_cache_metrics() -> None:
    metrics, missing = region_metrics(_region(caches=False))
    assert sorted(metrics) == ["dsb", "instructions_kernel", "instructions_user", "tlbi"]
    assert not missing


@pytest.mark.parametrize(
    ("changed", "modelled", "words"),
    [
        ({"dc_zva": 5}, False, "where 5 DC ZVA of the region wrote"),
        ({"dc_zva": 5, "dc_zva_unplaced": 2}, True, "where 2 DC ZVA"),
        ({"untranslated_accesses": 7}, True, "the address of 7 accesses"),
    ],
)
def test_what_was_not_seen_is_absent_and_not_zero(
    changed: dict[str, int], modelled: bool, words: str
) -> None:
    metrics, missing = region_metrics({**_region(changed), "dc_zva_modelled": modelled})
    assert metrics["instructions_user"] == 3
    assert not any(name.endswith("_misses") for name in metrics)
    assert set(missing) == {"l1d_accesses", "l1d_misses", "l2_accesses", "l2_misses"}
    assert all(words in reason for reason in missing.values())


def test_a_few_unseen_of_many_do_not_matter() -> None:
    many = {"accesses": 50_000, "misses": 20, "writebacks": 0}
    region = {**_region({"dc_zva": 5, "l1d": many}), "dc_zva_modelled": False}
    assert region_metrics(region)[0]["l1d_misses"] == 22
    region["kernel"]["dc_zva"] = 1
    assert "l1d_misses" not in region_metrics(region)[0]


def test_a_region_without_dc_zva_is_whole_on_an_old_qemu() -> None:
    metrics, missing = region_metrics({**_region(), "dc_zva_modelled": False})
    assert "l2_misses" in metrics
    assert not missing


def test_regions_go_to_the_lines_that_name_them(tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [
        {"regions": ["a", "b"], "metrics": {"page_faults": 1}},
        {"files": {}},
        {"regions": ["c"]},
    ]
    guest._join(lines, [_region(), _region(), _region({"instructions": 10})], tmp_path / "log")
    assert lines[0]["metrics"]["instructions_user"] == 6
    assert lines[0]["metrics"]["page_faults"] == 1
    assert "metrics" not in lines[1]
    assert lines[2]["metrics"]["instructions_user"] == 10


def test_regions_that_do_not_match_fail(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("")
    with pytest.raises(GuestError, match="counted 1 regions where the guest's programs name 2"):
        guest._join([{"regions": ["a", "b"]}], [_region()], log)


# -- the cache experiments


def _row(experiment: str, metric: str, arms: dict[str, int], **params: Any) -> dict[str, Any]:
    return {
        "release": "6.12", "machine": "thunderx2", "experiment": experiment, "metric": metric,
        "arms": arms, "params": params,
    }  # fmt: skip


def test_knee_is_the_last_number_of_places_that_stay() -> None:
    misses = {7: 7, 8: 8, 9: 9000, 10: 10000}
    rows = [
        _row("set-conflict", "l1d_misses", {"stock": count}, n=n, rounds=1000)
        for n, count in misses.items()
    ]
    per_read = cache_digest.misses_per_read(rows)
    assert per_read[9] == 1.0
    assert cache_digest.knee(per_read) == 8
    assert cache_digest.knee({1: 0.5}) is None


def test_spread_is_over_the_colors() -> None:
    rows = [
        _row("zero-conflict", "l2_misses", {"stock": n * 100}, level="l2", hot_color=n, rounds=100)
        for n in range(4)
    ]
    spread = cache_digest.spreads(rows)["l2", "l2_misses", "stock"]
    assert spread == cache_digest.Spread(0, 1.5, 3)


def test_digest_says_what_it_found() -> None:
    rows = [
        _row("set-conflict", "l1d_misses", {"stock": 8}, n=8, rounds=1000),
        _row("set-conflict", "l1d_misses", {"stock": 9000}, n=9, rounds=1000),
        _row("zero-conflict", "l2_misses", {"stock": 900}, level="l2", hot_color=0, rounds=100),
        _row("zero-scan", "l1d_misses", {"stock": 55}, stride=64, working_set=32768, rounds=10),
    ]
    sink = io.StringIO()
    cache_digest.print_digest({"rows": rows}, Console(file=sink, width=100))
    text = sink.getvalue()
    assert "8 places fit: 0.00100; 9 do not: 1.00000" in text
    assert "9.000" in text
    assert "64 B, 32 KiB" in text
    assert "5.5" in text


def test_catalogue_has_a_line_for_each_level() -> None:
    rows = [
        _row(experiment, metric, {"stock": 900, arm: 100}, **params, rounds=100)
        for level, arm, size in (("l1d", "color", 32768), ("l2", "color-l2", 262144))
        for metric in (f"{level}_misses",)
        for experiment, params in (
            ("zero-conflict", {"level": level, "hot_color": 0}),
            ("zero-scan", {"stride": 64, "working_set": size}),
        )
    ]
    lines = cache_digest.catalogue({"rows": rows})
    assert list(lines) == ["thunderx2"]
    assert [(line.level, line.colors) for line in lines["thunderx2"]] == [("l1d", 1), ("l2", 8)]
    for line in lines["thunderx2"]:
        assert (line.stock.worst, line.several.worst) == (9, 1)
        assert (line.scan_stock, line.scan_several) == (9, 1)


Sources = Callable[[str], KernelSource]


@pytest.fixture(scope="module")
def rows(
    sources: Sources, reporter: Reporter, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str, str], list[dict[str, Any]]]:
    """Return a function that runs one cache experiment on one machine."""

    def measure(machine: str, experiment: str) -> list[dict[str, Any]]:
        out = tmp_path_factory.mktemp(f"{machine}-{experiment}")
        runs = make_plan(Request(machines=(machine,), experiments=(experiment,)))
        cells = build_parts(sources("6.12"), runs, out, reporter).cells(runs)
        store = ResultStore(out)
        assert not run_cells(cells, store, out, reporter)
        results = [result for cell in cells if (result := store.get(cell.key))]
        assert len(results) == len(cells)
        summary = summarize(results, {experiment: runs[0].experiment})
        found = summary["rows"]
        assert isinstance(found, list)
        return found

    return measure


Rows = Callable[[str, str], list[dict[str, Any]]]


@pytest.mark.kernel
@pytest.mark.parametrize(("machine", "ways"), [("thunderx2", 8), ("neoverse-n1", 4)])
def test_set_conflict_has_its_knee_at_the_ways(rows: Rows, machine: str, ways: int) -> None:
    per_read = cache_digest.misses_per_read(rows(machine, "set-conflict"))
    assert sorted(per_read) == list(range(1, 2 * ways + 3))
    assert cache_digest.knee(per_read) == ways
    assert per_read[ways] <= 0.001
    assert per_read[ways + 1] == pytest.approx(1.0, abs=0.005)


@pytest.mark.kernel
def test_zero_conflict_loses_its_worst_case_and_keeps_its_mean(rows: Rows) -> None:
    found = rows("thunderx2", "zero-conflict")
    spread = cache_digest.spreads(found)
    stock, several = (spread["l2", "l2_misses", arm] for arm in ("stock", "color-l2"))
    assert stock.worst == pytest.approx(9, rel=0.01)
    assert stock.best < 0.05
    assert several.worst <= 1.05 * several.mean
    assert several.mean == pytest.approx(9 / 8, rel=0.02)
    # The mean is not what colours change.
    assert several.mean == pytest.approx(stock.mean, rel=0.05)
    checked = [row for row in found if row["metric"] == "hot_lines_checked"]
    assert checked
    assert all(value == 8 for row in checked for value in row["arms"].values())
