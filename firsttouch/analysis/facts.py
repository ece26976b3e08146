# SPDX-License-Identifier: GPL-2.0
"""The report's plain tables: the cost when off, what is not available, provenance."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from firsttouch.errors import UserError
from firsttouch.catalog.machine_values import colors
from firsttouch.catalog.machines import Cache, load_machine
from firsttouch.quantities import format_change, format_count, format_size, parse_size
from firsttouch.analysis.dataset import BASE_ARM, Case, Dataset
from firsttouch.output.labels import cell_name, value_label
from firsttouch.analysis.summary import change_percent

_OFF = "off"
_METRIC = "\0"
# The first that was measured tells the price; instructions are finer than time.
_PRICES = (("instructions_kernel", "instructions"), ("sys_ns", "ns"))


@dataclass(frozen=True)
class OffCost:
    """What one cell pays for features that are built in and switched off."""

    cell: str
    stock: str
    off: str
    change: str
    per_page: str
    command: str


@dataclass(frozen=True)
class Missing:
    """A reason, the metrics it holds for, and the experiments it was met in."""

    reason: str
    metrics: str
    where: str


@dataclass(frozen=True)
class Origin:
    """One fact about where the results come from; `of` says which of them, if not all."""

    name: str
    value: str
    of: str


def off_costs(dataset: Dataset) -> list[OffCost]:
    """Return a line for each case that was measured on stock and with the features off."""
    cases = [case for case in dataset.cases if {BASE_ARM, _OFF} <= case.arms.keys()]
    several = len({case.setting for case in cases}) > 1
    return [line for case in cases if (line := _off_cost(case, several))]


def _off_cost(case: Case, several: bool) -> OffCost | None:
    for metric, unit in _PRICES:
        stock, off = case.value(BASE_ARM, metric), case.value(_OFF, metric)
        if stock is None or off is None:
            continue
        where = f", {case.setting}" if several else ""
        return OffCost(
            f"{cell_name(case.experiment, case.params)}{where}: {metric}",
            value_label(stock, unit),
            value_label(off, unit),
            format_change(change_percent(stock, off)),
            _per_page(case, off - stock, unit),
            case.command(_OFF),
        )
    return None


def _per_page(case: Case, difference: float, unit: str) -> str:
    if "size" not in case.params:
        return "-"
    pages = int(case.params["size"]) / parse_size(str(case.params.get("page", "4k")))
    value = difference / pages
    if value == 0:
        return f"0 {unit}"
    sign = "+" if value > 0 else "-"
    return f"{sign}{format_count(float(f'{abs(value):.3g}'))} {unit}"


def missing_metrics(dataset: Dataset) -> list[Missing]:
    """Return what could not be measured, each reason once."""
    metrics: dict[str, dict[str, None]] = {}
    where: dict[str, dict[str, None]] = {}
    for row in dataset.summary["unavailable"]:
        for words in row["reasons"].values():
            # One reason for many metrics that names each of them is one reason.
            reason = str(words).replace(row["metric"], _METRIC)
            metrics.setdefault(reason, {})[row["metric"]] = None
            where.setdefault(reason, {})[row["experiment"]] = None
    return [
        Missing(
            reason.replace(_METRIC, next(iter(names)) if len(names) == 1 else "them"),
            ", ".join(sorted(names)),
            ", ".join(sorted(where[reason])),
        )
        for reason, names in metrics.items()
    ]


def origins(dataset: Dataset) -> list[Origin]:
    """Return the facts of provenance; one that differs between cells has a line for each value."""
    return [
        *_lines("kernel", ((r["arm"], r.get("kernel_version")) for r in dataset.results)),
        *_recorded(dataset, "QEMU", "qemu"),
        *_recorded(dataset, "compiler", "gcc"),
        *_recorded(dataset, "kernel image", "image"),
        *_recorded(dataset, "kernel command line", "boot"),
        *_recorded(dataset, "init", "init"),
        *_lines("ftbench", _files(dataset)),
        *_recorded(dataset, "modelled PMU", "pmu"),
        *_machines(dataset),
    ]


def _machines(dataset: Dataset) -> Iterator[Origin]:
    """Return the caches of each machine, as its file has them now."""
    for name in sorted({setting.machine for setting in dataset.settings()}):
        try:
            machine = load_machine(name)
        except UserError as error:
            yield Origin(f"machine {name}", str(error), "")
            continue
        kind = machine.cpus[0]
        caches = {"L1D": kind.l1d, "L2": kind.l2, "L3": machine.l3}
        words = [f"{level} {_cache(cache)}" for level, cache in caches.items() if cache]
        yield Origin(f"machine {name}", f"{machine.title}; {'; '.join(words)}", "")


def _cache(cache: Cache) -> str:
    ways = "1 way" if cache.ways == 1 else f"{cache.ways} ways"
    count = colors(cache)
    return (
        f"{format_size(cache.size)}, {ways} of {format_size(cache.way_size)}, "
        f"{cache.policy.upper()}, {count} {'colour' if count == 1 else 'colours'}"
    )


def _files(dataset: Dataset) -> Iterator[tuple[str, object]]:
    for result in dataset.results:
        files = result["provenance"].get("files")
        yield result["arm"], files.get("/ftbench") if isinstance(files, dict) else None


def _recorded(dataset: Dataset, name: str, key: str) -> list[Origin]:
    return _lines(name, ((r["arm"], r["provenance"].get(key)) for r in dataset.results))


def _lines(name: str, found: Iterable[tuple[str, object]]) -> list[Origin]:
    arms: dict[str, dict[str, None]] = {}
    for arm, value in found:
        arms.setdefault(str(value) if value else "not recorded", {})[arm] = None
    return [
        Origin(name, value, "" if len(arms) == 1 else ", ".join(of)) for value, of in arms.items()
    ]
