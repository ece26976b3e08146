# SPDX-License-Identifier: GPL-2.0
"""The knee of set-conflict: caches found by nothing but the time per read."""

from __future__ import annotations

import dataclasses
import json

import pytest

from firsttouch.survey.geometry import CacheFinding, Knee, examine_caches, find_knee
from firsttouch.survey.host import Geometry, Host
from firsttouch.survey.samples import Sample, Samples
from firsttouch.survey.tasks import conflict_name, geometry_tasks
from tests.support.surveys import N1, RECORDED, K, Silicon, cache, host_with, line

# (L1D ways, way; L2 ways, way): those of machines/, and others.
MACHINES = {
    "Cortex-A55": Silicon(4, 8 * K, 4, 64 * K),
    "Cortex-A72": Silicon(2, 16 * K, 16, 64 * K),
    "Cortex-A73": Silicon(16, 4 * K, 16, 64 * K),
    "Neoverse N1": N1,
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
    return finding.agreement.endswith("which agrees with sysfs")


@pytest.mark.parametrize("silicon", MACHINES.values(), ids=MACHINES)
def test_what_sysfs_says_is_confirmed(silicon: Silicon) -> None:
    caches = _examine(_host(silicon), silicon)
    assert caches["l1d"].measured == Geometry("l1d", silicon.l1_ways, silicon.l1_way)
    assert caches["l2"].measured == Geometry("l2", silicon.l2_ways, silicon.l2_way)
    assert all(_agrees(finding) for finding in caches.values())


@pytest.mark.parametrize("silicon", MACHINES.values(), ids=MACHINES)
def test_caches_are_found_where_sysfs_has_only_their_size(silicon: Silicon) -> None:
    """170 of 237 arm64 device trees lack the sets."""
    host = host_with(cache("l1d", None, 16 * K), cache("l2", None, 128 * K))
    caches = _examine(host, silicon)
    assert caches["l1d"].reported is None
    assert caches["l1d"].used == Geometry("l1d", silicon.l1_ways, silicon.l1_way)
    assert caches["l2"].used == Geometry("l2", silicon.l2_ways, silicon.l2_way)


def test_wrong_ways_in_sysfs_are_found_out() -> None:
    """Some device trees claim a geometry that the CPU's manual contradicts."""
    host = host_with(cache("l1d", 8, 8 * K), cache("l2", 8, 128 * K))
    caches = _examine(host, MACHINES["Neoverse N1"])
    assert "rises after 4 lines of one set" in caches["l1d"].agreement
    assert caches["l1d"].agreement.endswith("shows 4 ways of 16 KiB and does not agree with sysfs")


def test_noise_adds_time_and_moves_no_knee() -> None:
    silicon = MACHINES["Zen 4"]
    noise = {conflict_name(4 * K, n): 50.0 for n in (1, 2, 5, 8, 17)}
    noise |= {conflict_name(128 * K, n): 80.0 for n in (3, 6)}
    # The last point that fits stays undisturbed: the knee depends on it.
    del noise[conflict_name(4 * K, 8)]
    caches = _examine(_host(silicon), silicon, noise)
    assert _agrees(caches["l1d"])
    assert _agrees(caches["l2"])


def test_a_virtual_machine_hides_the_conflicts_of_its_host() -> None:
    """Its pages lie anywhere in the host's memory: no stride fills one set of the L2."""
    silicon = MACHINES["Zen 4"]
    scattered = Silicon(silicon.l1_ways, silicon.l1_way, silicon.l2_ways * 32, silicon.l2_way)
    host = dataclasses.replace(_host(silicon), virtual=True)
    caches = _examine(host, scattered)
    assert _agrees(caches["l1d"])
    assert caches["l2"].measured is None
    assert "physical addresses are not the host's" in caches["l2"].agreement


def test_what_a_conflict_costs() -> None:
    silicon = MACHINES["Neoverse N1"]
    caches = _examine(_host(silicon), silicon)
    for level, fits, misses in (("l1d", 1.5, 5.0), ("l2", 5.0, 20.0)):
        within, beyond = caches[level].within, caches[level].beyond
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
        ({1: 1.0, 2: 1.0, 3: 4.0, 4: 4.0}, Knee(2, 3)),
        ({1: 9.0, 2: 1.0, 3: 9.0, 4: 1.1, 5: 4.0, 6: 4.0}, Knee(4, 5)),  # two disturbed points
        ({1: 1.0, 2: 1.0, 3: 1.0, 4: 4.0}, None),  # one point at the end is no knee
        ({1: 1.0, 2: 1.0, 3: 2.0, 4: 3.9, 5: 4.0, 6: 4.0}, Knee(2, 4)),  # a blunt one
    ],
)
def test_where_the_time_per_read_rises(times: dict[int, float], expected: Knee | None) -> None:
    assert find_knee(times) == expected


def test_the_time_of_a_hit_may_come_from_elsewhere() -> None:
    # All of these lines miss in the cache before: the least of the times is no hit.
    times = {1: 5.0, 2: 5.0, 3: 5.0, 4: 5.0}
    assert find_knee(times, hit=2.0) is None
    assert find_knee({1: 5.0, 2: 5.0, 3: 20.0, 4: 20.0}, hit=5.0) == Knee(2, 3)


@pytest.mark.parametrize(
    ("knee", "ways"), [(Knee(4, 5), 4), (Knee(11, 13), 12), (Knee(3, 4), 3), (Knee(4, 7), 4)]
)
def test_the_ways_of_a_blunt_knee(knee: Knee, ways: int) -> None:
    assert knee.ways == ways


def _recorded(name: str) -> tuple[Host, list[Sample]]:
    """Return a host of recorded/curves.json, and samples that have its curves."""
    entry = json.loads((RECORDED / "curves.json").read_text())[name]
    host = host_with(*(cache(level, *numbers) for level, numbers in entry["caches"].items()))
    samples = [
        line(task, number, {"user_ns": times[n - 1] * 1000, "sys_ns": 0, "reads": 1000})
        for task in geometry_tasks(host)
        for _, stride, n in [[int(word) for word in ("0", *task.name.split()[1:])]]
        for times in [entry["curves"].get(str(stride), [])]
        if n <= len(times)
        for number in range(3)
    ]
    return dataclasses.replace(host, virtual=True), samples


def _caches_of(name: str) -> dict[str, CacheFinding]:
    host, samples = _recorded(name)
    return {f.level: f for f in examine_caches(host, Samples(samples), virtual_time=False)}


@pytest.mark.parametrize("name", ["contiguous", "scattered", "scattered-again"])
def test_a_recorded_l1d_agrees_with_sysfs(name: str) -> None:
    """Its knee is blunt: 11 lines fit, 12 miss in half of the reads, 13 in all."""
    caches = _caches_of(name)["l1d"]
    assert caches.measured == Geometry("l1d", 12, 4 * K)
    assert _agrees(caches)


def test_a_recorded_survey_that_was_too_short() -> None:
    """The curve of the way's size was cut off, and that of its half alone shows no ways."""
    for caches in _caches_of("short").values():
        assert caches.measured is None
        assert "there was no time for it" in caches.agreement


def test_a_recorded_step_of_the_l1d_is_not_the_l2s_knee() -> None:
    caches = _caches_of("contiguous")["l2"]
    assert caches.measured == Geometry("l2", 16, 128 * K)
    assert _agrees(caches)
    assert caches.within and caches.beyond
    assert (caches.within.median, caches.beyond.median) == (6.4, 23.0)
    assert caches.lines == (16, 17)


@pytest.mark.parametrize("name", ["scattered", "scattered-again"])
def test_steps_of_the_tlb_and_the_l1d_are_not_the_l2s_knee(name: str) -> None:
    caches = _caches_of(name)["l2"]
    assert caches.measured is None
    assert "physical addresses are not the host's" in caches.agreement


@pytest.mark.parametrize("points", [14, 20, 33])
def test_a_curve_that_was_cut_off_does_not_count(points: int) -> None:
    """Cut off at 20 points, the L2's curve looks as if it rose for good."""
    host, samples = _recorded("contiguous")
    cut_off = {conflict_name(128 * K, n) for n in range(points + 1, 99)}
    rest = Samples(sample for sample in samples if sample.task not in cut_off)
    caches = {f.level: f for f in examine_caches(host, rest, virtual_time=False)}["l2"]
    assert caches.measured is None
    assert "there was no time for it" in caches.agreement


def test_the_most_telling_curves_are_measured_first() -> None:
    host = _host(MACHINES["Neoverse N1"])
    order = dict.fromkeys(int(task.name.split()[1]) for task in geometry_tasks(host))
    assert list(order)[:2] == [16 * K, 128 * K]


def test_a_costly_stride_hides_no_knee() -> None:
    """Each read of the L2's curve pays for a miss in the TLB too."""
    silicon = MACHINES["Neoverse N1"]
    host = _host(silicon)
    slower = {conflict_name(128 * K, n): 3.0 for n in range(1, 99)}
    slower |= {conflict_name(256 * K, n): 3.0 for n in range(1, 99)}
    caches = _examine(host, silicon, slower)
    assert caches["l2"].measured == Geometry("l2", 8, 128 * K)
