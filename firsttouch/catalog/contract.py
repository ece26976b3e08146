# SPDX-License-Identifier: GPL-2.0
"""What ftbench and the modelled PMU can do, and checks of experiments against it.

``ftbench --list=json`` lists the experiments, parameters, values and metrics that it has. A
file that asks for anything else is refused before a kernel is built or a guest booted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from firsttouch.catalog.experiments import Experiment, Params, Value
from firsttouch.errors import UserError, nearest
from firsttouch.files import EXPERIMENTS
from firsttouch.quantities import parse_size
from firsttouch.tables import file_of, parse_json, read

# Metrics of the PMU: those that need no modelled caches, and those that do.
COUNTED = (
    "instructions_user", "instructions_kernel", "tlbi", "dsb", "isb", "tlbi_broadcast",
    "tlbi_local", "ipi", "aborts",
)  # fmt: skip
MODELLED = ("l1d_accesses", "l1d_misses", "l2_accesses", "l2_misses")
# Those that follow from such a count, and from what else is known of a cell.
COMBINED = ("pages_allocated", "tlbi_answers", "fault_retries")
# Metrics that QEMU cannot show. An experiment names one so that the report says why.
HIDDEN = ("lock_waits",)
# Metrics that the laboratory finds in a recording of page faults.
RECORDED = (
    "faults", "doubles", "doubles_atomic", "doubles_exclusive", "doubles_apart",
    "doubles_in_files", "removed_by_rmw", "faults_shared", "resident",
)  # fmt: skip


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
        try:
            # parse_size() refuses 0, but ftbench's bounds may allow it.
            number = int(value) if self.type == "count" or value == 0 else parse_size(value)
        except ValueError:
            return f"is {value!r}: give a number, such as {self.min}."
        if self.min <= number and (self.max is None or number <= self.max):
            return None
        most = "" if self.max is None else f" and at most {self.max}"
        return f"is {value!r}: give at least {self.min}{most}."


@dataclass(frozen=True)
class Benchmark:
    """One experiment of ftbench: its parameters by name, and its metrics."""

    parameters: Mapping[str, Parameter]
    metrics: Collection[str]


@dataclass(frozen=True)
class Contract:
    benchmarks: Mapping[str, Benchmark]

    def check(self, experiment: Experiment) -> None:
        """Raise UserError for the first thing in an experiment's file that ftbench does not have.

        Values that begin with ``@`` follow from a machine: `check_params` checks those.
        """
        file = file_of("experiment", experiment.name, EXPERIMENTS)
        benchmark = self.benchmarks.get(experiment.runs)
        if benchmark is None:
            near = nearest(experiment.runs, self.benchmarks)
            raise UserError(
                f"{file}: runs is {experiment.runs!r}: ftbench has no such experiment; {near}"
            )
        for name, values in [*experiment.parameters.items(), *(experiment.quick or {}).items()]:
            key = f"{file}: parameters.{name}"
            if name not in benchmark.parameters:
                near = nearest(name, benchmark.parameters)
                raise UserError(f"{key} is no parameter of ftbench {experiment.runs}: {near}")
            for value in values:
                problem_of = benchmark.parameters[name].problem
                if not str(value).startswith("@") and (problem := problem_of(value)):
                    raise UserError(f"{key} {problem}")
        metrics = {*benchmark.metrics, *COUNTED, *COMBINED, *MODELLED, *HIDDEN, *RECORDED}
        for number, metric in enumerate(experiment.metrics):
            if metric.name not in metrics:
                near = nearest(metric.name, metrics)
                raise UserError(f"{file}: metrics[{number}].name is {metric.name!r}: {near}")

    def check_params(self, experiment: Experiment, params: Params) -> None:
        """Raise UserError if ftbench would refuse a value that the user or a machine gave."""
        for name, value in params.items():
            problem = self.benchmarks[experiment.runs].parameters[name].problem(value)
            if problem:
                raise UserError(f"{experiment.name}: {name} {problem}")


def parse_contract(text: str) -> Contract:
    benchmarks = {}
    for entry in parse_json(text, "ftbench --list=json").tables("experiments"):
        params = [read(each, Parameter, strict=False) for each in entry.tables("params")]
        benchmarks[entry.take("name", str)] = Benchmark(
            {parameter.name: parameter for parameter in params},
            [each.take("name", str) for each in entry.tables("metrics")],
        )
    return Contract(benchmarks)
