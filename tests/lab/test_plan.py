# SPDX-License-Identifier: GPL-2.0
"""The plan: exactly what was requested, checked before anything is built."""

from typing import Any

import pytest

from firsttouch.catalog.contract import Contract
from firsttouch.catalog.experiments import load_experiment
from firsttouch.cli.options import settings_of
from firsttouch.errors import UserError
from firsttouch.files import EXPERIMENTS
from firsttouch.lab.plan import Plan, Request, make_plan
from firsttouch.tables import names_in
from tests.support.contract import real_contract


@pytest.fixture(scope="module")
def contract() -> Contract:
    return real_contract()


def _plan(contract: Contract, **asked: Any) -> Plan:
    return make_plan(Request(**asked), "6.12", contract)


def test_the_default_plan_has_the_default_experiments(contract: Contract) -> None:
    plan = _plan(contract)
    default = [name for name in names_in(EXPERIMENTS) if load_experiment(name).default]
    assert {cell.experiment for cell in plan.cells} == set(default)
    assert len({cell.identity for cell in plan.cells}) == len(plan.cells)
    grouped = [cell for group in plan.groups for cell in group]
    assert {cell.identity for cell in grouped} == {cell.identity for cell in plan.cells}
    assert len(grouped) == len(plan.cells)


def test_a_parameter_may_have_several_values(contract: Contract) -> None:
    plan = _plan(
        contract, experiments=("populate",), arms=("stock",),
        settings=settings_of(["by=store", "page=4k", "by=ldadd"]),
    )  # fmt: skip
    assert [cell.params["by"] for cell in plan.cells] == ["store", "ldadd"]
    with pytest.raises(UserError, match="--set by=ldad: no such value"):
        _plan(contract, experiments=("populate",), settings={"by": ("store", "ldad")})


def test_settings_arms_and_sizes_choose_cells(contract: Contract) -> None:
    plan = _plan(
        contract, experiments=("populate",), arms=("stock", "rmw"), size=1 << 24,
        settings={"by": ("ldadd",), "page": ("4k",)},
    )  # fmt: skip
    assert [cell.arm for cell in plan.cells] == ["stock", "rmw"]
    assert {cell.params["size"] for cell in plan.cells} == {1 << 24}
    assert [len(group) for group in plan.groups] == [1, 1]


def test_what_is_named_twice_is_run_once(contract: Contract) -> None:
    names = ("populate", "populate")
    once = _plan(contract, experiments=names[:1], arms=("stock",))
    twice = _plan(contract, experiments=names, arms=("stock", "stock"),
                  machines=("neoverse-n1", "neoverse-n1"))  # fmt: skip
    assert twice.cells == once.cells
    assert twice.groups == once.groups


def test_a_guest_of_many_cells_runs_all_of_them_whatever_is_asked_for(contract: Contract) -> None:
    assert load_experiment("set-conflict").one_guest
    whole = _plan(contract, experiments=("set-conflict",), arms=("stock",))
    value = str(whole.cells[3].params["n"])
    part = _plan(contract, experiments=("set-conflict",), arms=("stock",), settings={"n": (value,)})
    assert 0 < len(part.cells) < len(whole.cells)
    assert part.groups == whole.groups


def test_a_profile_of_several_cpus_is_refused(contract: Contract) -> None:
    names = ("several-cpus",)
    with pytest.raises(UserError, match=r"has cells with 2: select others by --set cpus=1"):
        _plan(contract, experiments=names, profile=True)
    plan = _plan(contract, experiments=names, profile=True, settings={"cpus": ("1",)})
    assert {cell.cpus for cell in plan.cells} == {1}


def test_a_setting_names_only_cells_that_have_the_parameter(contract: Contract) -> None:
    names = ("populate", "file-read-fault")
    plan = _plan(contract, experiments=names, settings={"page": ("4k",)})
    assert {cell.experiment for cell in plan.cells} == {"populate"}
    assert {cell.params["page"] for cell in plan.cells} == {"4k"}
