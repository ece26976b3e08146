# SPDX-License-Identifier: GPL-2.0
"""The table on the terminal: within 100 columns, plain where there is no terminal."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from firsttouch.catalog.experiments import experiment_names, load_experiment
from firsttouch.catalog.machine_values import expand
from firsttouch.catalog.machines import load_machine
from firsttouch.output.terminal import print_summary

_EXPERIMENTS = {name: load_experiment(name) for name in experiment_names()}


def _summary() -> dict[str, Any]:
    """Every cell of every experiment, with numbers as large as they get."""
    rows = [
        {
            "release": "6.12",
            "machine": "big-little-rk3588",
            "experiment": name,
            "params": params,
            "metric": metric,
            "unit": unit,
            "arms": dict.fromkeys(experiment.arms, 9_876_543_210),
            "change_percent": -99.8051,
            "published": {"figure": "halved", "source": "a posting"},
            "verdict": "not reproduced",
        }
        for name, experiment in _EXPERIMENTS.items()
        for combination in experiment.combinations()
        for params in expand(combination, load_machine("big-little-rk3588"))
        for metric, unit in [
            *((metric.name, metric.unit) for metric in experiment.metrics),
            *((figure.name, figure.unit) for figure in experiment.derived),
        ]
    ]
    missing = [
        {**row, "reasons": {"stock": "no PMU", "on": "no PMU"}}
        for row in rows
        if row["metric"] == "tlbi"
    ]
    return {"schema": 1, "rows": rows, "unavailable": missing}


def _printed(terminal: bool) -> str:
    sink = io.StringIO()
    console = Console(file=sink, width=100, force_terminal=terminal, highlight=False)
    print_summary(_summary(), _EXPERIMENTS, console)
    return sink.getvalue()


def test_no_line_is_wider_than_100_columns_and_nothing_is_cut() -> None:
    text = _printed(terminal=False)
    assert max(map(len, text.splitlines())) <= 100
    assert "…" not in text
    # Tables and sentences are plain text: no escape, no box.
    assert "\x1b" not in text


def test_a_terminal_gets_colour_and_the_same_words() -> None:
    plain, coloured = _printed(terminal=False), _printed(terminal=True)
    assert "\x1b[" in coloured
    assert "not reproduced" in plain and "not reproduced" in coloured


@pytest.mark.parametrize("word", ["tlbi: no PMU", "Not available", "-99.81 %", "Published"])
def test_what_must_be_there(word: str) -> None:
    assert word in _printed(terminal=False)
