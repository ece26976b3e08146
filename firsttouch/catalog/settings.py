# SPDX-License-Identifier: GPL-2.0
"""Settings: what surrounds a kernel that is tried, the same for stock and for the arm.

Each is one file, settings/NAME.toml.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from firsttouch.catalog.arms import Arm
from firsttouch.errors import UserError
from firsttouch.places import REPOSITORY, SETTINGS
from firsttouch.tables import names_in, read_named
from firsttouch.typed import read

# Between the names of settings that are combined.
AND = "+"


@dataclass(frozen=True)
class Setting:
    """What differs from how a cell runs otherwise; empty fields change nothing.

    Of one `axis`, such as the preemption, a guest has one setting. `boot` are
    words for the kernel's command line, `board` properties of QEMU's board,
    `machine` is run in place of the one that was asked for, `cpus` is the
    guest's number of CPUs, for experiments that do not ask for one. `fragment`
    is the path in this repository of a file that is laid over the configuration,
    for which the kernels are built. `quick` settings belong to the quick matrix.
    `releases` are those whose kernels have it; empty for all.
    """

    name: str
    title: str
    axis: str
    order: int
    quick: bool = False
    boot: tuple[str, ...] = ()
    board: tuple[str, ...] = ()
    machine: str = ""
    cpus: int = 0
    fragment: str = ""
    releases: tuple[str, ...] = ()

    def is_of(self, release: str) -> bool:
        """Tell whether kernels of a release have it."""
        return not self.releases or release in self.releases

    def applied(self, arm: Arm) -> Arm:
        """Return `arm` as it is in this setting."""
        kernel = arm.kernel
        if self.fragment:
            kernel = replace(kernel, fragments=(*kernel.fragments, REPOSITORY / self.fragment))
        return replace(arm, kernel=kernel, boot=(*arm.boot, *self.boot))


# How cells run otherwise.
BARE = Setting("", "as it is", "", 0)


def setting_names() -> list[str]:
    """Return the names of all settings."""
    return names_in(SETTINGS)


def all_settings() -> list[Setting]:
    """Return all settings in the order of their files' `order`."""
    return sorted(map(load_setting, setting_names()), key=lambda setting: setting.order)


def matrix_settings(release: str, *, quick: bool) -> tuple[Setting, ...]:
    """Return no setting, and each that a release has, or each quick one."""
    of_release = [setting for setting in all_settings() if setting.is_of(release)]
    return (BARE, *(setting for setting in of_release if setting.quick or not quick))


def load_setting(name: str) -> Setting:
    """Return setting `name`, or several of them, ``kpti-off+cpus-4``, as one.

    Raises UserError if there is no such setting, its file is wrong, or two
    belong to one axis.
    """
    if not name:
        return BARE
    parts = [_load(part) for part in name.split(AND)]
    if len({part.axis for part in parts}) < len(parts):
        raise UserError(f"--setting {name}: two of them set the {parts[0].axis}: give one.")
    return _combined(name, parts)


def _load(name: str) -> Setting:
    return read(read_named("setting", name, SETTINGS), Setting, name=name)


def _combined(name: str, parts: Sequence[Setting]) -> Setting:
    first, *others = parts
    for other in others:
        first = replace(
            first,
            title=f"{first.title}, {other.title}",
            quick=first.quick and other.quick,
            boot=(*first.boot, *other.boot),
            board=(*first.board, *other.board),
            machine=first.machine or other.machine,
            cpus=first.cpus or other.cpus,
            fragment=first.fragment or other.fragment,
            releases=first.releases or other.releases,
        )
    return replace(first, name=name)


def full_product(settings: Iterable[Setting]) -> int:
    """Return how many combinations of settings there are, of each axis one or none."""
    axes = Counter(setting.axis for setting in settings if setting.name)
    return math.prod(count + 1 for count in axes.values())
