# SPDX-License-Identifier: GPL-2.0
"""A Cell is one measurement: plan.py makes it, run.py and timed.py run it, analysis/ reads it."""

from __future__ import annotations

import re
import shlex
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from firsttouch.building.programs import ORDERS
from firsttouch.catalog.arms import Arm
from firsttouch.catalog.experiments import Params
from firsttouch.errors import UserError
from firsttouch.files import digest_bytes
from firsttouch.tables import Json
from firsttouch.vm.guest import KASLR_SEED

# What a cell is measured by: QEMU's count of instructions, the clock of a guest of KVM, or
# that of this host's own kernel.
Timing = Literal["icount", "kvm", "host"]
# The machine of cells that run on this host. The name of another architecture follows it.
HOST = "host"


@dataclass(frozen=True)
class Cell:
    """One measurement.

    `layout` numbers arrangements of kernel and program in memory, 0 the usual one. `profile` asks
    for counts by function of the kernel. `setting` names what differs in its guest on every arm.
    """

    release: str
    arm: str
    machine: str
    experiment: str
    params: Params
    layout: int = 0
    profile: bool = False
    setting: str = ""
    timing: Timing = "icount"

    @property
    def identity(self) -> str:
        """A string that only equal cells share."""
        return repr(self)

    @property
    def cpus(self) -> int:
        """The number of CPUs of the guest, which a parameter of that name decides."""
        number = self.params.get("cpus")
        return number if isinstance(number, int) else 1

    @property
    def title(self) -> str:
        """The cell's name in messages and in the name of its log."""
        words = [self.experiment, *(f"{name}={value}" for name, value in self.params.items())]
        words += [self.arm, self.machine, self.release]
        words += [f"layout {self.layout}"] if self.layout else []
        return " ".join([*words, self.setting] if self.setting else words)

    @property
    def log_name(self) -> str:
        return self.title.replace(" ", "_").replace("/", "-") + ".log"

    def command(self, source: Path | None = None, tried: Arm | None = None) -> str:
        """Return the shell command that runs only this cell, on the kernel in `source` if given.

        With an arm that was `tried`, it also runs stock.
        """
        words = ["firsttouch"]
        if self.timing == "host":
            words += ["survey", "--experiment", self.experiment]
        else:
            words += ["try" if tried else "profile" if self.profile else "lab"]
            words += ["--source", str(source)] if source else ["--release", self.release]
            if self.timing == "kvm":
                architecture = self.machine.removeprefix(HOST).removeprefix("-")
                words += ["--time", *(["--arch", architecture] if architecture else [])]
            else:
                words += ["--machine", self.machine]
            words += ["--experiment", self.experiment]
            words += [] if tried else ["--arm", self.arm]
            words += ["--setting", self.setting] if self.setting else []
        for name, value in self.params.items():
            sized = name == "size" and self.timing != "host"
            words += ["--size", str(value)] if sized else ["--set", f"{name}={value}"]
        if self.layout:
            words += ["--layouts", f"{self.layout}-{self.layout}"]
        # Last, because all that follows --arm belongs to the arm.
        return shlex.join([*words, *(tried.options() if tried else [])])

    def document(self) -> dict[str, Json]:
        document = {**asdict(self), "params": dict(self.params), "cpus": self.cpus}
        usual = {"profile": False, "setting": "", "timing": "icount"}
        return {name: value for name, value in document.items() if usual.get(name) != value}


# The largest paddings, in bytes. arm64's command line has 2,048 bytes, of which an arm needs some
# hundreds.
_LINE, _ENVIRONMENT = 512, 1024


@dataclass(frozen=True)
class Layout:
    """What differs in the guests of a layout.

    `words` of the kernel's command line pad that line, where a name has a dot as a module's
    parameter has, or the environment of init and its commands. `order`, less than `ORDERS`, is that
    in which ftbench's objects are linked.
    """

    words: tuple[str, ...] = ()
    kaslr_seed: int = KASLR_SEED
    order: int = 0


def layout_of(number: int) -> Layout:
    if not number:
        return Layout()
    seed = bytes.fromhex(digest_bytes(f"layout {number}".encode()))
    line, environment = int.from_bytes(seed[:2]), int.from_bytes(seed[2:4])
    words = (
        f"layout.padding={'x' * (line % _LINE)}",
        f"LAYOUT={'x' * (environment % _ENVIRONMENT)}",
    )
    # The kernel takes 0 for no seed.
    return Layout(words, int.from_bytes(seed[8:16]) or 1, number % ORDERS)


def parse_layouts(text: str) -> tuple[int, ...]:
    """Return the layouts that ``--layouts`` asks for: ``20`` the first 20, ``20-99`` these."""
    if match := re.fullmatch(r"(?:(\d{1,4})-)?(\d{1,4})", text):
        first, last = int(match[1] or 0), int(match[2]) - (match[1] is None)
        if first <= last:
            return tuple(range(first, last + 1))
    raise UserError(
        f"--layouts {text}: give how many, such as 20, or the first and the last, such as 20-99."
    )
