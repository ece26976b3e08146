# SPDX-License-Identifier: GPL-2.0
"""The knee of set-conflict: caches found by nothing but the time per read."""

from __future__ import annotations

import dataclasses

import pytest

from firsttouch.survey.geometry import CacheFinding, examine_caches, ways_shown
from firsttouch.survey.host import Geometry, Host
from firsttouch.survey.samples import Samples
from firsttouch.survey.tasks import conflict_name
from tests.support.surveys import Silicon, cache, host_with

K = 1024
# (L1D ways, way; L2 ways, way): those of machines/, and others.
MACHINES = {
    "Cortex-A55": Silicon(4, 8 * K, 4, 64 * K),
    "Cortex-A72": Silicon(2, 16 * K, 16, 64 * K),
    "Cortex-A73": Silicon(16, 4 * K, 16, 64 * K),
    "Neoverse N1": Silicon(4, 16 * K, 8, 128 * K),
    "ThunderX2": Silicon(8, 4 * K, 8, 32 * K),
    "Zen 4": Silicon(8, 4 * K, 8, 128 * K),
    "Apple M1": Silicon(8, 16 * K, 12, 256 * K),
}


def _host(silicon: Silicon) -> Host:
    return host_with(
        cache("l1d", silicon.l1_ways, silicon.l1_way),
        cache("l2", silicon.l2_ways, silicon.l2_way),
    )


def _examine(
    host: Host, silicon: Silicon, noise: dict[str, float] | None = None
) -> dict[str, CacheFinding]:
    samples = Samples(silicon.conflict_samples(host, noise))
    return {f.level: f for f in examine_caches(host, samples, virtual_time=False)}


def _agrees(finding: CacheFinding) -> bool:
    return finding.agreement.endswith("which agrees")


@pytest.mark.parametrize("silicon", MACHINES.values(), ids=MACHINES)
def test_what_sysfs_says_is_confirmed(silicon: Silicon) -> None:
    found = _examine(_host(silicon), silicon)
    assert found["l1d"].measured == Geometry("l1d", silicon.l1_ways, silicon.l1_way)
    assert found["l2"].measured == Geometry("l2", silicon.l2_ways, silicon.l2_way)
    assert all(_agrees(finding) for finding in found.values())


@pytest.mark.parametrize("silicon", MACHINES.values(), ids=MACHINES)
def test_caches_are_found_where_sysfs_has_only_their_size(silicon: Silicon) -> None:
    """170 of 237 arm64 device trees lack the sets."""
    host = host_with(cache("l1d", None, 16 * K), cache("l2", None, 128 * K))
    found = _examine(host, silicon)
    assert found["l1d"].told is None
    assert found["l1d"].used == Geometry("l1d", silicon.l1_ways, silicon.l1_way)
    assert found["l2"].used == Geometry("l2", silicon.l2_ways, silicon.l2_way)


def test_wrong_ways_in_sysfs_are_found_out() -> None:
    """Some device trees claim a geometry that the CPU's manual contradicts."""
    host = host_with(cache("l1d", 8, 8 * K), cache("l2", 8, 128 * K))
    found = _examine(host, MACHINES["Neoverse N1"])
    assert "rises behind 4 lines of one set" in found["l1d"].agreement
    assert found["l1d"].agreement.endswith("shows 4 ways of 16 KiB and does not agree")


def test_noise_adds_time_and_moves_no_knee() -> None:
    silicon = MACHINES["Zen 4"]
    noise = {conflict_name(4 * K, n): 50.0 for n in (1, 2, 5, 8, 17)}
    noise |= {conflict_name(128 * K, n): 80.0 for n in (3, 6)}
    # The last point that fits stays undisturbed: the knee depends on it.
    del noise[conflict_name(4 * K, 8)]
    found = _examine(_host(silicon), silicon, noise)
    assert _agrees(found["l1d"])
    assert _agrees(found["l2"])


def test_a_virtual_machine_hides_the_conflicts_of_its_host() -> None:
    """Its pages lie anywhere in the host's memory: no stride fills one set of the L2."""
    silicon = MACHINES["Zen 4"]
    scattered = Silicon(silicon.l1_ways, silicon.l1_way, silicon.l2_ways * 32, silicon.l2_way)
    host = dataclasses.replace(_host(silicon), virtual=True)
    found = _examine(host, scattered)
    assert _agrees(found["l1d"])
    assert found["l2"].measured is None
    assert "physical addresses are not the host's" in found["l2"].agreement


def test_what_a_conflict_costs() -> None:
    silicon = MACHINES["Neoverse N1"]
    found = _examine(_host(silicon), silicon)
    for level, fits, misses in (("l1d", 1.5, 5.0), ("l2", 5.0, 20.0)):
        within, beyond = found[level].within, found[level].beyond
        assert within and beyond
        assert (within.median, beyond.median) == (fits, misses)


def test_in_virtual_time_no_cache_shows() -> None:
    host = _host(MACHINES["Neoverse N1"])
    findings = examine_caches(host, Samples([]), virtual_time=True)
    assert [finding.level for finding in findings] == ["l1d", "l2"]
    for finding in findings:
        assert finding.measured is None
        assert "counts instructions" in finding.agreement


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ({}, None),
        ({1: 1.0}, None),
        ({1: 1.0, 2: 1.0, 3: 1.0, 4: 1.0}, None),
        ({1: 1.0, 2: 1.0, 3: 4.0, 4: 4.0}, 2),
        ({1: 9.0, 2: 1.0, 3: 9.0, 4: 1.1, 5: 4.0, 6: 4.0}, 4),  # two disturbed points
        ({1: 1.0, 2: 1.0, 3: 1.0, 4: 4.0}, None),  # one point at the end is no knee
    ],
)
def test_where_the_time_per_read_rises(times: dict[int, float], expected: int | None) -> None:
    assert ways_shown(times) == expected


def test_the_time_of_a_hit_may_come_from_elsewhere() -> None:
    # All of these lines miss in the cache before: the least of the times is no hit.
    times = {1: 5.0, 2: 5.0, 3: 5.0, 4: 5.0}
    assert ways_shown(times, hit=2.0) is None
    assert ways_shown({1: 5.0, 2: 5.0, 3: 20.0, 4: 20.0}, hit=5.0) == 2
