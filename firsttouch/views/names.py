# SPDX-License-Identifier: GPL-2.0
"""Names of cells, metrics and values in tables, pictures and sentences."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from firsttouch.analysis.changes import JUDGED
from firsttouch.analysis.dataset import NOT_PUBLISHED, Distribution, Row
from firsttouch.catalog.arms import BASE
from firsttouch.catalog.experiments import Experiment, Params, Value
from firsttouch.quantities import format_change, format_size, parse_size

_SIZES = ("size", "heap")
# The label of results of `firsttouch lab --quick`.
QUICK = "quick: smaller sizes and fewer cells, a first answer"


def format_params(params: Mapping[str, Value]) -> str:
    """Return a cell's parameters for people: ``ldadd 4k size 1 GiB``."""
    return " ".join(format_param(name, value) for name, value in params.items())


def format_param(name: str, value: Value) -> str:
    """Return one parameter for people; only a number has the parameter's name before it."""
    size = as_number(name, value) if name in _SIZES else None
    if size:
        return f"{name} {format_size(size)}"
    return f"{name} {value}" if isinstance(value, int) else value


def as_number(name: str, value: Value) -> int | None:
    """Return the value of a parameter that is a number or a size; None if it is neither."""
    if isinstance(value, int):
        return value
    try:
        return parse_size(value) if name in _SIZES else None
    except ValueError:
        # Results that come from others may hold anything.
        return None


def varying(experiment: Experiment, params: Params) -> Params:

    def varies(name: str) -> bool:
        listed = [str(value) for value in experiment.parameters.get(name, ())]
        return len(listed) != 1 or listed[0].startswith("@")

    return {name: value for name, value in params.items() if varies(name)}


def cell_name(experiment: Experiment, params: Params) -> str:
    """Return a cell's name: the experiment, the parameters that vary, and the size."""
    telling = varying(experiment, params)
    shown = {name: value for name, value in params.items() if name in telling or name == "size"}
    return f"{experiment.name} {format_params(shown)}".replace(" size ", " ").rstrip()


def metric_words(name: str) -> str:
    return JUDGED.get(name) or name.removesuffix("_ns").replace("_", " ")


def change_head(pairs: Collection[tuple[str, str] | None], experiment: Experiment) -> str:
    """Return the head of a column of changes; it names the arms if they are not the usual pair."""
    named = {pair for pair in pairs if pair}
    if len(named) != 1 or named == {(BASE, experiment.compare)}:
        return "change"
    ((base, compared),) = named
    return f"change {base} -> {compared}"


# Heads of the columns of changes over layouts.
SPREAD = ("least", "median", "most")


def spread_words(row: Row) -> tuple[str, ...]:
    """Return the least, the median and the largest change over layouts; empty without layouts."""
    changes = row.changes_over()
    return changes_of(changes) if changes else ("", "", "")


def changes_of(changes: Distribution) -> tuple[str, ...]:
    return tuple(map(format_change, changes.spread))


def verdict_words(row: Row) -> str:
    """Return a row's verdict and in how many layouts it holds; empty if nothing is judged."""
    held = row.holds_in()
    words = f"{row.verdict}, holds in {held[0]} of {held[1]}" if held else row.verdict
    return "" if row.verdict == NOT_PUBLISHED else words
