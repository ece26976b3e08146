# SPDX-License-Identifier: GPL-2.0
"""The table of provenance: what decided the figures, and which of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from firsttouch.analysis.cases import Platform
from firsttouch.analysis.dataset import Dataset
from firsttouch.catalog.machines import Cache
from firsttouch.lab.results import Provenance
from firsttouch.quantities import format_size

# More values than this are only counted; results.jsonl has the value of each cell.
_MOST = 12
_WORDS: Mapping[str, Callable[[Provenance], str]] = {
    "kernel": lambda made: made.kernel_version,
    "QEMU": lambda made: made.qemu,
    "compiler": lambda made: made.compiler,
    "kernel command line": lambda made: made.boot,
}
# Digests that have a clearer name for people.
_NAMES = {"PMU": "modelled PMU", "QEMU": "QEMU's program"}
# It differs for each cell, because it contains the cell's command.
_LEFT_OUT = "initial RAM disk"


@dataclass(frozen=True)
class Origin:
    """One fact about the provenance of results; `of` says of which, empty means of all."""

    name: str
    value: str
    of: str


def origins(dataset: Dataset) -> list[Origin]:
    """Return the facts of provenance; a fact has a line for each of its values."""
    origins: list[Origin] = []
    for name, read in _WORDS.items():
        origins += _lines(dataset, name, read)
    digests = dict.fromkeys(
        name
        for result in dataset.results()
        for name in result.provenance.digests
        if name != _LEFT_OUT
    )
    for digest in digests:
        origins += _lines(dataset, _NAMES.get(digest, digest), _digest_reader(digest))
    return [*origins, *_machines(dataset)]


def _digest_reader(name: str) -> Callable[[Provenance], str]:
    return lambda made: made.digests.get(name, "")


def _lines(dataset: Dataset, name: str, read: Callable[[Provenance], str]) -> Iterator[Origin]:
    """Return a line for each value of one fact; cells without it are skipped."""
    arms: dict[str, dict[str, None]] = {}
    platforms: dict[str, dict[Platform, None]] = {}
    for case in dataset.cases:
        for arm, measured in case.arms.items():
            value = read(measured.result.provenance)
            if value:
                arms.setdefault(value, {})[arm] = None
                platforms.setdefault(value, {})[case.platform] = None
    if len(arms) > _MOST:
        yield Origin(name, f"{len(arms):,} values; results.jsonl has that of each cell", "")
        return
    for value in arms:
        of = []
        if len(arms[value]) < len(dataset.arms(dataset.cases)):
            of.append(", ".join(sorted(arms[value], key=dataset.catalog.arm_order)))
        if len(platforms[value]) < len(dataset.platforms()):
            of.append(", ".join(str(platform) for platform in sorted(platforms[value])))
        yield Origin(name, value, "; ".join(of))


def _machines(dataset: Dataset) -> Iterator[Origin]:
    """Return the caches of each machine from its present file."""
    for name in dict.fromkeys(platform.machine for platform in dataset.platforms()):
        machine = dataset.catalog.machines.get(name)
        if machine is None:
            yield Origin(f"machine {name}", dataset.catalog.broken.get(name, "not recorded"), "")
            continue
        kind = machine.cpus[0]
        caches = {"L1D": kind.l1d, "L2": kind.l2, "L3": machine.l3}
        words = [f"{level} {_cache(cache)}" for level, cache in caches.items() if cache]
        yield Origin(f"machine {name}", f"{machine.title}; {'; '.join(words)}", "")


def _cache(cache: Cache) -> str:
    ways = "1 way" if cache.ways == 1 else f"{cache.ways} ways"
    return (
        f"{format_size(cache.size)}, {ways} of {format_size(cache.way_size)}, "
        f"{cache.policy.upper()}, {cache.colors} {'colour' if cache.colors == 1 else 'colours'}"
    )
