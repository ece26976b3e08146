# SPDX-License-Identifier: GPL-2.0
"""The catalogue of machines, and what follows from one file: tree, table, plan, PMU."""

from dataclasses import replace
from pathlib import Path

import pytest

from firsttouch.building.host_tools import qemu_cpus
from firsttouch.catalog.experiments import expand
from firsttouch.catalog.machines import load_machine
from firsttouch.errors import UserError
from firsttouch.files import MACHINES
from firsttouch.tables import names_in
from firsttouch.vm.guest import Pmu

NAMES = names_in(MACHINES)


@pytest.mark.parametrize("name", NAMES)
def test_every_cpu_is_one_that_qemu_has(name: str) -> None:
    load_machine(name).check_cpu(qemu_cpus())


@pytest.mark.parametrize("name", NAMES)
def test_every_machine_runs_under_the_midr_of_its_own_cpu(name: str) -> None:
    machine = load_machine(name)
    if name == "tags":
        assert machine.midr is None, "no machine: QEMU's own CPU"
        return
    assert machine.midr is not None
    assert machine.qemu_cpu == f"{machine.cpu},midr={machine.midr:#x}"
    # Bits 16 to 19 of every CPU with ID registers, DDI 0487, MIDR_EL1.Architecture.
    assert machine.midr >> 16 & 0xF == 0xF


@pytest.mark.parametrize(
    ("name", "l1d", "l2"),
    [("thunderx2", 1, 8), ("neoverse-n1", 4, 32), ("cortex-a53", 2, 8), ("apple-m1", 4, 256)],
)
def test_colors_follow_from_the_way(name: str, l1d: int, l2: int) -> None:
    kind = load_machine(name).cpus[0]
    assert kind.l2
    assert (kind.l1d.colors, kind.l2.colors) == (l1d, l2)


def test_parameters_follow_from_the_machine() -> None:
    machine = load_machine("thunderx2")
    places = expand({"n": "@l1d.places", "stride": "@l1d.way_size"}, machine)
    assert [params["n"] for params in places] == list(range(1, 19))
    assert {params["stride"] for params in places} == {4096}
    hot = expand({"level": "l2", "hot_color": "@level.colors"}, machine)
    assert [params["hot_color"] for params in hot] == list(range(8))
    assert expand({"working_set": "@l2.size", "rounds": 3}, machine) == [
        {"working_set": 262144, "rounds": 3}
    ]


@pytest.mark.parametrize("value", ["@l1d.wys", "@l9.size", "@level.size", "@l2.size"])
def test_a_value_that_a_machine_lacks_is_named(value: str) -> None:
    machine = load_machine("thunderx2")
    bare = replace(machine, cpus=(replace(machine.cpus[0], l2=None),))
    with pytest.raises(UserError, match=": machine thunderx2 has none; "):
        expand({"n": value}, bare)


def test_the_pmu_models_each_cpu_by_its_kind() -> None:
    machine = load_machine("big-little-rk3588")
    options = Pmu(Path("plugin"), caches=True).options(machine, 2)
    assert "l1d@0=65536:4:64:lru" in options
    assert "l1d@1=32768:4:64:random" in options
    assert "l3=3145728:12:64:lru" in options
    assert Pmu(Path("plugin"), caches=False).options(machine, 2) == []
