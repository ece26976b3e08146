# SPDX-License-Identifier: GPL-2.0
"""The command of each cell, parsed, asks for this cell and no other."""

import shlex
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest

from firsttouch.catalog.arms import Kernel, load_setting, tried_arm
from firsttouch.catalog.experiments import Packages, UserProgram, load_experiment
from firsttouch.cli.count import programs_of
from firsttouch.cli.main import full_parser
from firsttouch.cli.options import request_of, settings_of
from firsttouch.errors import UserError
from firsttouch.files import ARCHITECTURES, EXPERIMENTS, SETTINGS
from firsttouch.lab.cells import Cell
from firsttouch.lab.plan import COUNT, DEFAULT_RELEASE, Request, make_plan
from firsttouch.lab.timed import plan_times
from firsttouch.progress import Reporter
from firsttouch.survey.tasks import all_tasks, selected
from firsttouch.tables import names_in
from tests.support.contract import real_contract
from tests.support.surveys import HOST as SURVEYED


def _parsed(command: str) -> list[Cell]:
    """Return the cells of the plan that a command asks for."""
    program, *words = shlex.split(command)
    assert program == "firsttouch"
    options = full_parser().parse_args(words)
    if words[0] == "survey":
        wanted = selected(options.experiment, settings_of(options.set))
        cells = [
            task.cell(SURVEYED) for task in all_tasks(SURVEYED) if wanted(task, task.cell(SURVEYED))
        ]
        return list({cell.identity: cell for cell in cells}.values())
    request = request_of(options, profile=words[0] == "profile")
    if getattr(options, "time", False):
        return _timed(request)
    return list(make_plan(request, request.release, real_contract()).cells)


def _timed(request: Request) -> list[Cell]:
    """Return the cells that `lab --time` measures of each arm, but those that are always there."""
    with mock.patch("firsttouch.lab.timed.check_kvm"):
        timed = plan_times(request, request.release, real_contract())
    return [cell for cell in timed.plan.cells if cell.arm in request.arms]


def _cells(request: Request) -> list[Cell]:
    """Return the first, the last and one more cell of each experiment of a plan."""
    cells = make_plan(request, request.release, real_contract()).cells
    return [cells[0], cells[len(cells) // 2], cells[-1]]


# `firsttouch count` asks for the other one.
_EXPERIMENTS = [name for name in names_in(EXPERIMENTS) if name != COUNT]


@pytest.mark.parametrize("name", _EXPERIMENTS)
def test_the_command_of_a_cell_asks_for_it_alone(name: str) -> None:
    experiment = load_experiment(name)
    request = Request(experiments=(name,))
    quick = _cells(replace(request, quick=True)) if experiment.quick else []
    for cell in [*_cells(request), *quick]:
        assert _parsed(cell.command()) == [cell]
    other = replace(_cells(request)[0], layout=3)
    assert _parsed(other.command()) == [other]


@pytest.mark.parametrize("architecture", names_in(ARCHITECTURES))
@pytest.mark.parametrize("name", _EXPERIMENTS)
def test_the_command_of_a_timed_cell_times_it(name: str, architecture: str) -> None:
    request = Request(experiments=(name,), arms=("on",), architecture=architecture)
    try:
        cells = _timed(request)
    except UserError as error:
        assert "--time can measure none of these cells" in str(error)
        return
    for cell in (cells[0], cells[-1]):
        assert cell.timing == "kvm"
        assert _parsed(cell.command()) == [cell]


def test_the_command_of_a_counted_program_counts_it(tmp_path: Path) -> None:
    (tmp_path / "a b").touch()
    for program in (
        UserProgram(("sh", "-c", "echo $1"), Packages("trixie", ("dash", "jq")), cpus=2),
        UserProgram(("/x",), root=tmp_path, copies=(tmp_path / "a b",), memory=1 << 30),
    ):
        words = shlex.split(program.command("7.3", "stock"))
        options = full_parser().parse_args(words[1:])
        assert programs_of(options, Reporter(), reads=False) == [program]
        assert (options.release, options.arm) == (["7.3"], ["stock"])


def test_the_command_of_a_surveyed_cell_surveys_it() -> None:
    for task in all_tasks(SURVEYED):
        cell = task.cell(SURVEYED)
        assert _parsed(cell.command()) == [cell]


@pytest.mark.parametrize("name", names_in(SETTINGS))
def test_the_command_of_a_cell_in_a_setting_names_it(name: str) -> None:
    setting = load_setting(name)
    release = setting.releases[0] if setting.releases else DEFAULT_RELEASE
    request = Request(experiments=("populate",), around=(setting,), release=release)
    for cell in _cells(request):
        assert cell.setting == name
        assert _parsed(cell.command()) == [cell]


def test_the_command_of_a_profiled_cell_profiles_it() -> None:
    request = Request(experiments=("zero-programs",), arms=("stock",), profile=True)
    for cell in _cells(request):
        command = cell.command()
        assert command.startswith("firsttouch profile ")
        assert _parsed(command) == [cell]


def test_the_command_of_a_tried_cell_tries_its_arm() -> None:
    arm = tried_arm("mine", 0, "my.patch", Kernel("stock", (Path("my.patch"),)))
    cell = _cells(Request(experiments=("populate",), around=(load_setting("kpti-off"),)))[0]
    words = shlex.split(replace(cell, arm="mine").command(tried=arm))
    options = full_parser().parse_args(words[1:])
    assert words[1] == "try" and options.setting == ["kpti-off"]
    assert [(wanted.name, wanted.patches) for wanted in options.wanted] == [
        ("mine", [Path("my.patch")])
    ]
