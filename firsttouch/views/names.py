# SPDX-License-Identifier: GPL-2.0
"""Names of cells and cases in tables, pictures and sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from firsttouch.analysis.cases import Case
from firsttouch.catalog.experiments import Experiment, Params, Value
from firsttouch.quantities import format_size, parse_size

_SIZES = ("size", "heap")


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
    """Return the parameters that the experiment or the machine varies."""

    def varies(name: str) -> bool:
        listed = [str(value) for value in experiment.parameters.get(name, ())]
        return len(listed) != 1 or listed[0].startswith("@")

    return {name: value for name, value in params.items() if varies(name)}


def cell_name(experiment: Experiment, params: Params) -> str:
    """Return a cell's name: the experiment, the parameters that vary, and the size."""
    telling = varying(experiment, params)
    shown = {name: value for name, value in params.items() if name in telling or name == "size"}
    return f"{experiment.name} {format_params(shown)}".replace(" size ", " ").rstrip()


def case_label(case: Case, among: Sequence[Case]) -> str:
    """Return the parameters in which `case` differs from the others in `among`."""
    telling = {
        name: value
        for name, value in case.params.items()
        if len({str(other.params.get(name)) for other in among}) > 1
    }
    return format_params(telling) if telling else cell_name(case.experiment, case.params)
