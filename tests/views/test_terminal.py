# SPDX-License-Identifier: GPL-2.0
"""The tables on the terminal: within 100 columns, plain where there is no terminal."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from firsttouch.analysis.dataset import Dataset
from firsttouch.catalog.experiment_files import experiment_names, load_experiment
from firsttouch.catalog.machines import expand, load_machine
from firsttouch.places import EXPERIMENTS
from firsttouch.views.answers import print_answers
from firsttouch.views.comparison import print_comparison
from firsttouch.views.rows import print_dataset
from firsttouch.views.terminal import output_console
from firsttouch.views.two_results import compare
from tests.support import made_results
from tests.support.made_results import Made

_MACHINE = "big-little-rk3588"


def _console(*, terminal: bool = False) -> tuple[Console, io.StringIO]:
    sink = io.StringIO()
    return Console(file=sink, width=100, force_terminal=terminal, highlight=False), sink


def _printed(dataset: Dataset, *, terminal: bool = False) -> str:
    console, sink = _console(terminal=terminal)
    print_dataset(dataset, console)
    return sink.getvalue()


@pytest.fixture(scope="module")
def widest(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """Every cell of every experiment, with numbers as large as they get."""
    results = []
    for name in experiment_names():
        experiment = load_experiment(name)
        for combination in experiment.combinations():
            for params in expand(combination, load_machine(_MACHINE)):
                for number, arm in enumerate(experiment.arms):
                    metrics = {
                        metric.name: 9_876_543_210 - number
                        for metric in experiment.metrics
                        if metric.name != "tlbi"
                    }
                    made = Made(name, params, arm, metrics, {"tlbi": "no PMU"}, machine=_MACHINE)
                    results.append(made)
    return made_results.dataset(tmp_path_factory.mktemp("out"), results)


@pytest.fixture(scope="module")
def text(widest: Dataset) -> str:
    return _printed(widest)


def test_several_machines_are_set_side_by_side(tmp_path: Path) -> None:
    results = []
    for machine in ("neoverse-n1", "thunderx2"):
        l1d = load_machine(machine).cpus[0].l1d
        for arm, misses in (("stock", 9000), ("color", 4500)):
            results += [
                Made("zero-conflict", {"level": "l1d", "hot_color": color, "rounds": 1000}, arm,
                     {"l1d_misses": misses * (color + 1)}, machine=machine)
                for color in range(2)
            ]  # fmt: skip
            params = {"stride": 64, "working_set": l1d.size, "rounds": 10}
            scan = Made("zero-scan", params, arm, {"l1d_misses": misses}, machine=machine)
            results.append(scan)
    text = _printed(made_results.dataset(tmp_path, results))
    assert "Effect of colours, by machine" in text
    (line,) = (line.split() for line in text.splitlines() if line.startswith("thunderx2 "))
    assert line[1:] == [
        "L1D",
        "2",
        "18.00",
        "->",
        "9.00",
        "13.50",
        "->",
        "6.75",
        "900",
        "->",
        "450",
    ]


@pytest.mark.parametrize("name", ["[bold]", "[/red]", "[", "a\\", "\x1b[31mred", "two\nlines"])
def test_a_name_of_others_is_printed_as_it_is_and_ends_nothing(tmp_path: Path, name: str) -> None:
    results = [
        replace(made, machine=name, qemu=name, missing={"tlbi": name},
                params={**made.params, "by": name},
                arm=name if made.arm == "on" else made.arm)
        for made in made_results.plan(EXPERIMENTS, ["populate"], by="store")
    ]  # fmt: skip
    dataset = made_results.dataset(tmp_path / "a", results)
    changed = [replace(made, qemu=f"{name} 2", machine=f"{name} 2") for made in results]
    other = made_results.dataset(tmp_path / "b", changed)
    console, sink = _console()
    print_dataset(dataset, console)
    print_answers(dataset, "report.html", console)
    print_comparison(compare(dataset, other), name, name, console)
    text = sink.getvalue()
    assert "\x1b" not in text
    seen = name.replace("\x1b", "\N{REPLACEMENT CHARACTER}")
    assert seen.replace("\n", "\N{REPLACEMENT CHARACTER}") in text


def test_a_parameter_that_is_a_size_in_words_is_printed_as_a_size(tmp_path: Path) -> None:
    """Once it loaded, ran, and ended in a traceback after the run."""
    folder = made_results.experiments(tmp_path)
    file = folder / "openjdk-pretouch.toml"
    file.write_text(file.read_text().replace('heap = "512M"', 'heap = ["256M", "512M"]'))
    results = made_results.plan(folder, ["openjdk-pretouch"], java="21", collector="g1")
    text = _printed(made_results.dataset(tmp_path / "out", results, folder))
    assert "heap 256 MiB" in text and "heap 512 MiB" in text


@pytest.mark.parametrize("value", ["lots", 0, -5])
def test_a_size_that_is_none_is_printed_as_it_is(tmp_path: Path, value: str | int) -> None:
    made = [
        replace(result, params={**result.params, "size": value})
        for result in made_results.plan(EXPERIMENTS, ["populate"], by="store", page="4k")
    ]
    made += made_results.plan(EXPERIMENTS, ["populate"], by="store", page="4k")
    assert _printed(made_results.dataset(tmp_path, made)).count("page_faults") == 2


def test_results_go_to_at_most_100_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    assert output_console().width == 100
