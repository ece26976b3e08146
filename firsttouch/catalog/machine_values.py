# SPDX-License-Identifier: GPL-2.0
"""Parameters that follow from a machine: ``@CACHE.PROPERTY`` in an experiment's file.

CACHE is ``l1d``, ``l2``, or ``level`` for the cache that the parameter
``level`` of the same cell names. PROPERTY is ``way_size`` or ``size`` in
bytes, ``ways``, ``colors`` (0 to the number of colours - 1) or ``places`` (1
to 2 x ways + 2). The caches are those of the machine's first CPU, where
experiments run.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

from firsttouch.catalog.experiments import Params, Value
from firsttouch.catalog.machines import Cache, Machine
from firsttouch.errors import UserError, nearest

_PROPERTIES: dict[str, Callable[[Cache], list[Value]]] = {
    "way_size": lambda cache: [cache.way_size],
    "size": lambda cache: [cache.size],
    "ways": lambda cache: [cache.ways],
    "colors": lambda cache: list(range(cache.colors)),
    "places": lambda cache: list(range(1, 2 * cache.ways + 3)),
}
# What a figure may mark.
MARKS = ["@l1d.ways", "@l2.ways", "@level.ways"]


def expand(params: Params, machine: Machine) -> list[Params]:
    """Return `params` with the values of `machine`: one set for each combination.

    Raises UserError for an unknown property, or a cache that the machine does
    not have.
    """
    choices = [
        _values(value, params, machine) if str(value).startswith("@") else [value]
        for value in params.values()
    ]
    return [dict(zip(params, values, strict=True)) for values in itertools.product(*choices)]


def _values(value: Value, params: Params, machine: Machine) -> list[Value]:
    name, _, wanted = str(value)[1:].partition(".")
    if wanted not in _PROPERTIES:
        raise UserError(f"{value}: no such property of a cache; {nearest(wanted, _PROPERTIES)}")
    kind = machine.cpus[0]
    caches = {"l1d": kind.l1d, "l2": kind.l2}
    level = str(params.get("level", "")) if name == "level" else name
    if level not in caches:
        raise UserError(f"{value}: no such cache; {nearest(level, caches)}")
    cache = caches[level]
    if cache is None:
        raise UserError(f"{value}: machine {machine.name} has no {level}.")
    return _PROPERTIES[wanted](cache)
