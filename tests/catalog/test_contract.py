# SPDX-License-Identifier: GPL-2.0
"""Experiments checked against ftbench: what it lacks is named before anything is built."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from firsttouch.catalog.contract import Contract
from firsttouch.catalog.experiment_files import experiment_names, load_experiment
from firsttouch.errors import UserError
from firsttouch.places import EXPERIMENTS
from tests.support.contract import real_contract


@pytest.fixture(scope="module")
def contract() -> Contract:
    return real_contract()


@pytest.mark.parametrize("name", experiment_names())
def test_each_experiment_asks_for_what_there_is(contract: Contract, name: str) -> None:
    contract.check(load_experiment(name))


@pytest.mark.parametrize(
    ("name", "change", "complaint"),
    [
        ("populate", ('"ldadd"', '"lddad"'),
         "populate.toml: parameters.by is 'lddad': did you mean 'ldadd'"),
        ("populate", ("instructions_user", "instruction_user"),
         "populate.toml: metrics[3].name is 'instruction_user': did you mean 'instructions_user'"),
        ("populate", ('unit = "faults"', 'unit = "fault"'),
         "populate.toml: metrics[0].unit of page_faults is 'fault': write 'faults'"),
        ("populate", ("threads = 1", "treads = 1"),
         "populate.toml: parameters.treads is no parameter of ftbench populate: did you mean "
         "'threads'"),
        ("populate", ("threads = 1", "threads = 0"), "parameters.threads is 0: give at least 1"),
        ("populate", ("threads = 1", 'threads = "two"'),
         "parameters.threads is 'two': give a whole number"),
        ("populate", ('size = "256M"', "size = 100"),
         "populate.toml: parameters.size is 100: give at least 4 KiB"),
        ("populate", ('"--set-thp"', '"--set-tph"'),
         "populate.toml: options names '--set-tph': did you mean '--set-thp'"),
        ("populate", ('"--set-thp"', '"set-thp"'), "options names 'set-thp'"),
        ("populate", ('"--set-thp"', '"--set-thp", "--repeat"'), "ends in '--repeat'"),
        ("populate", ('"--set-thp"', '"--repeat", "0"'), "'--repeat' is '0': give at least 1"),
        ("populate", ('"--set-thp"', '"--counters=cores"'), "did you mean 'core'"),
        ("populate", ("[parameters]", 'runs = "poplate"\n[parameters]'),
         "populate.toml: runs is 'poplate': ftbench has no such experiment; "
         "did you mean 'populate'"),
        ("switched-off", ('runs = "', 'runs = "x'), "switched-off.toml: runs is 'x"),
        ("openjdk-pretouch", ('heap = "512M"', 'heap = "512"'),
         "openjdk-pretouch.toml: parameters.heap is '512': give at least 8 MiB"),
        ("openjdk-pretouch", ('heap = "512M"', 'heap = "512T"'),
         "parameters.heap is '512T': give a number of bytes"),
    ],
)  # fmt: skip
def test_what_ftbench_has_not_is_named_by_file_key_and_nearest(
    contract: Contract, own_entries: Path, name: str, change: tuple[str, str], complaint: str
) -> None:
    text = (EXPERIMENTS / f"{name}.toml").read_text()
    assert change[0] in text
    changed = text.replace(*change, 1)
    runs = "" if "\nruns = " in changed else f'runs = "{name}"\n'
    (own_entries / f"experiments/my-{name}.toml").write_text(runs + changed)
    experiment = load_experiment(f"my-{name}")
    with pytest.raises(UserError, match=re.escape(complaint)):
        contract.check(experiment)


def test_values_that_a_user_or_a_machine_gives_are_held_to_the_same_bounds(
    contract: Contract,
) -> None:
    experiment = load_experiment("populate")
    contract.check_params(experiment, {"by": "ldadd", "size": 4096})
    with pytest.raises(UserError, match="size is 100: give at least 4 KiB"):
        contract.check_params(experiment, {"by": "ldadd", "size": 100})
