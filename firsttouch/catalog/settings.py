# SPDX-License-Identifier: GPL-2.0
"""Settings: what surrounds a kernel that is tried, the same for stock and for the arm.

Each is one file, settings/NAME.toml.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from firsttouch.catalog.arms import Arm
from firsttouch.places import REPOSITORY, SETTINGS
from firsttouch.tables import names_in, read, read_named


@dataclass(frozen=True)
class Setting:
    """What differs from how a cell runs otherwise; empty fields change nothing.

    `boot` are
    words for the kernel's command line, `board` properties of QEMU's board,
    `machine` is run in place of the one that was asked for, `cpus` is the
    guest's number of CPUs, for experiments that do not ask for one. `fragment`
    is the path in this repository of a file that is laid over the configuration,
    for which the kernels are built. `quick` settings belong to the quick matrix.
    `releases` are those whose kernels have it; empty for all.
    """

    name: str
    title: str
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
BARE = Setting("", "as it is", 0)


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
    """Return setting `name`, BARE for ""; UserError if there is none, or its file is wrong."""
    return read(read_named("setting", name, SETTINGS), Setting, name=name) if name else BARE
