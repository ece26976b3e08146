# SPDX-License-Identifier: GPL-2.0
"""Data files: the committed ones are right; a mistake is named by file, key and nearest key."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from firsttouch.catalog.arms import load_arm
from firsttouch.catalog.experiments import load_experiment
from firsttouch.catalog.machines import load_machine
from firsttouch.errors import UserError
from firsttouch.files import ARMS, EXPERIMENTS, MACHINES
from firsttouch.tables import names_in
from tests.support.contrast import contrast

# Of firsttouch/views/html/style.py.
_PAPERS = ("#ffffff", "#14171b")


@pytest.mark.parametrize("name", names_in(MACHINES))
def test_each_machine_loads(name: str) -> None:
    machine = load_machine(name)
    for kind in machine.cpus:
        assert kind.l1d.sets * kind.l1d.ways * kind.l1d.line == kind.l1d.size
        assert kind.l1d.source


@pytest.fixture
def experiments(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXPERIMENTS, tmp_path / "experiments"))


def test_scripts_are_the_programs_of_an_experiment(experiments: Path) -> None:
    loaded = load_experiment("doubles", experiments)
    assert loaded.parameters["program"] == tuple(loaded.scripts)
    file = experiments / "doubles.toml"
    begin, _, rest = file.read_text().partition("[root]")
    file.write_text(begin + "[scripts]" + rest.partition("[scripts]")[2])
    with pytest.raises(UserError, match=r"doubles\.toml: scripts has no packages.*\[root\]"):
        load_experiment("doubles", experiments)


def test_scripts_of_another_experiment(experiments: Path) -> None:
    waste, doubles = (load_experiment(name, experiments) for name in ("waste", "doubles"))
    assert (waste.scripts, waste.root) == (doubles.scripts, doubles.root)
    assert waste.parameters == {"program": tuple(doubles.scripts)}


def test_arms_differ_in_how_they_are_drawn() -> None:
    marks = [(load_arm(name).mark.shape, load_arm(name).mark.filled) for name in names_in(ARMS)]
    assert len(set(marks)) == len(marks) >= 7
    orders = [load_arm(name).order for name in names_in(ARMS)]
    assert len(set(orders)) == len(orders)


@pytest.mark.parametrize("name", names_in(ARMS))
def test_an_arm_stands_out_from_both_papers(name: str) -> None:
    """By the contrast that WCAG 2 asks of pictures, 3 to 1."""
    mark = load_arm(name).mark
    assert contrast(mark.light, _PAPERS[0]) >= 3
    assert contrast(mark.dark, _PAPERS[1]) >= 3


def test_an_architecture_without_a_feature_gets_none_of_its_boot_words() -> None:
    """Its kernels do not know them, and a guest with such a word is an error."""
    arm64 = load_machine("neoverse-n1")
    x86 = replace(arm64, architecture="x86-64")
    boot = load_arm("all-on").boot
    assert arm64.boot_words(boot) == boot
    assert x86.boot_words(boot) == ("thp_anon=16K-64K:inorder;2M:inherit",)
    assert x86.boot_words(load_arm("color-l2").boot) == ()
