# SPDX-License-Identifier: GPL-2.0
"""Data files, and experiments checked against ftbench: mistakes are named before a build."""

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from firsttouch.catalog.arms import load_arm
from firsttouch.catalog.contract import Contract
from firsttouch.catalog.experiments import load_experiment
from firsttouch.catalog.machines import load_machine
from firsttouch.errors import UserError
from firsttouch.files import EXPERIMENTS, REPOSITORY
from firsttouch.tables import names_in
from tests.support.contract import real_contract


@pytest.fixture(scope="module")
def contract() -> Contract:
    return real_contract()


@pytest.mark.parametrize("name", names_in(EXPERIMENTS))
def test_each_experiment_asks_for_what_there_is(contract: Contract, name: str) -> None:
    contract.check(load_experiment(name))


_MISTAKES = tomllib.loads((REPOSITORY / "tests/data/mistakes.toml").read_text())["mistake"]


@pytest.mark.parametrize("mistake", _MISTAKES, ids=lambda mistake: f"{mistake['to']}")
def test_a_mistake_in_a_data_file_is_named_by_file_key_and_nearest(
    contract: Contract, own_entries: Path, mistake: dict[str, str]
) -> None:
    load: Mapping[str, Callable[[str], object]] = {
        "experiments": lambda name: contract.check(load_experiment(name)),
        "machines": load_machine,
        "arms": load_arm,
    }
    kind, name = Path(mistake["file"]).parent.name, f"my-{Path(mistake['file']).stem}"
    text = (REPOSITORY / mistake["file"]).read_text()
    assert mistake["of"] in text
    changed = text.replace(mistake["of"], mistake["to"], 1)
    if kind == "experiments" and "\nruns = " not in changed:
        changed = f'runs = "{name.removeprefix("my-")}"\n{changed}'
    (own_entries / kind / f"{name}.toml").write_text(changed)
    with pytest.raises(UserError, match=mistake["says"]):
        load[kind](name)
