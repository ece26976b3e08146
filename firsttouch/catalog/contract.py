# SPDX-License-Identifier: GPL-2.0
"""What ftbench and the modelled PMU can do, and checks of experiments against it.

``ftbench --list=json`` lists the experiments, parameters, values and metrics that it has. A
file that asks for anything else is refused before a kernel is built or a guest booted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from firsttouch.catalog.experiments import Experiment, Params, Value
from firsttouch.errors import UserError, nearest
from firsttouch.files import EXPERIMENTS
from firsttouch.quantities import format_size, parse_size
from firsttouch.tables import Fields, file_of, parse_json, read

# Metrics of the PMU with their units: those that need no modelled caches, and those that do.
COUNTED = {
    "instructions_user": "instructions", "instructions_kernel": "instructions",
    "tlbi": "instructions", "dsb": "instructions", "isb": "instructions",
    "tlbi_broadcast": "instructions", "tlbi_local": "instructions", "ipi": "instructions",
    "aborts": "exceptions",
}  # fmt: skip
# Those that follow from such a count, and from what else is known of a cell.
COMBINED = {"pages_allocated": "pages", "tlbi_answers": "answers", "fault_retries": "exceptions"}
MODELLED = {
    "l1d_accesses": "accesses", "l1d_misses": "misses",
    "l2_accesses": "accesses", "l2_misses": "misses",
}  # fmt: skip
# Metrics that QEMU cannot show. An experiment names one so that the report says why.
HIDDEN = {"lock_waits": "waits"}
# Metrics that the laboratory finds in a recording of page faults.
RECORDED = {
    "faults": "faults", "doubles": "faults",
    "doubles_atomic": "faults", "doubles_exclusive": "faults", "doubles_load_store": "faults",
    "doubles_apart": "faults", "doubles_in_files": "faults",
    "removed_by_rmw": "faults", "faults_shared": "faults", "resident": "bytes",
}  # fmt: skip


@dataclass(frozen=True)
class Parameter:
    """A parameter of ftbench, as it lists it; `type` is ``choice``, ``size`` or ``count``."""

    name: str
    type: str
    choices: tuple[str, ...] = ()
    min: int = 0
    max: int | None = None

    def problem(self, value: Value) -> str | None:
        """Return what is wrong with `value`, as the end of a sentence; None if nothing is."""
        if self.type == "choice":
            allowed = str(value) in self.choices
            return None if allowed else f"is {value!r}: {nearest(str(value), self.choices)}"
        if self.type not in ("size", "count"):
            return None
        shown = format_size if self.type == "size" else str
        try:
            # parse_size() refuses 0, but ftbench's bounds may allow it.
            zero = self.type == "count" or value == 0
            number = int(value) if zero else parse_size(value)
        except ValueError:
            what = "a number of bytes, such as 64M" if self.type == "size" else "a whole number"
            return f"is {value!r}: give {what}."
        if number < self.min:
            return f"is {value!r}: give at least {shown(self.min)}."
        if self.max is not None and number > self.max:
            return f"is {value!r}: give at most {shown(self.max)}."
        return None


@dataclass(frozen=True)
class Benchmark:
    """One experiment of ftbench: its parameters, and the units of its metrics."""

    parameters: Mapping[str, Parameter]
    units: Mapping[str, str]


@dataclass(frozen=True)
class Contract:
    """All experiments of ftbench, by name."""

    benchmarks: Mapping[str, Benchmark]

    def check(self, experiment: Experiment) -> None:
        """Raise UserError for the first thing in an experiment's file that ftbench does not have.

        Values that begin with ``@`` follow from a machine: `check_params` checks those.
        """
        table = Fields(file_of("experiment", experiment.name, EXPERIMENTS), {})
        benchmark = self.benchmarks.get(experiment.runs)
        if benchmark is None:
            near = nearest(experiment.runs, self.benchmarks)
            raise table.error(
                "runs", f"is {experiment.runs!r}: ftbench has no such experiment; {near}"
            )
        quick = (experiment.quick or {}).items()
        for name, values in [*experiment.parameters.items(), *quick]:
            if name not in benchmark.parameters:
                near = nearest(name, benchmark.parameters)
                raise table.error(
                    f"parameters.{name}", f"is no parameter of ftbench {experiment.runs}: {near}"
                )
            for value in values:
                problem_of = benchmark.parameters[name].problem
                if not str(value).startswith("@") and (problem := problem_of(value)):
                    raise table.error(f"parameters.{name}", problem)
        units = {**benchmark.units, **COUNTED, **COMBINED, **MODELLED, **HIDDEN, **RECORDED}
        for number, metric in enumerate(experiment.metrics):
            if metric.name not in units:
                problem = f"is {metric.name!r}: {nearest(metric.name, units)}"
                raise table.error(f"metrics[{number}].name", problem)
            if metric.unit != units[metric.name]:
                problem = f"of {metric.name} is {metric.unit!r}: write {units[metric.name]!r}."
                raise table.error(f"metrics[{number}].unit", problem)

    def check_params(self, experiment: Experiment, params: Params) -> None:
        """Raise UserError if ftbench would refuse a value that the user or a machine gave."""
        for name, value in params.items():
            problem = self.benchmarks[experiment.runs].parameters[name].problem(value)
            if problem:
                raise UserError(f"{experiment.name}: {name} {problem}")


def parse_contract(text: str) -> Contract:

    def parameters(entry: Fields) -> dict[str, Parameter]:
        listed = [read(each, Parameter, strict=False) for each in entry.tables("params")]
        return {parameter.name: parameter for parameter in listed}

    return Contract({
        entry.take("name", str): Benchmark(
            parameters(entry),
            {each.take("name", str): each.take("unit", str) for each in entry.tables("metrics")},
        )
        for entry in parse_json(text, "ftbench --list=json").tables("experiments")
    })  # fmt: skip
