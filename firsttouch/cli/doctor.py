# SPDX-License-Identifier: GPL-2.0
"""`firsttouch doctor`: what this host lacks, and the one command that installs it."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import dataclass

from firsttouch.building.host_tools import QEMU, check_plugins
from firsttouch.errors import HostError
from firsttouch.files import REPOSITORY
from firsttouch.processes import output
from firsttouch.progress import Reporter

# Who needs a package, by how its reason begins; and what does not work without it.
_NEEDED_BY = {
    "": ("The laboratory needs", "the laboratory"),
    "faster: ": ("The laboratory is faster with", "compiling each object once"),
    "package: ": ("`firsttouch kernel package` also needs", "`firsttouch kernel package`"),
    "tests: ": ("Its tests also need", "some tests of `make test`"),
    "regress: ": ("The tests of make regress also need", "some tests of `make regress`"),
}


@dataclass(frozen=True)
class Requirement:
    """An entry of packages.list, as ``./setup list`` finds it on this host.

    `lacking` has the package's tools that are missing from PATH, separated by
    blanks. `installed` tells whether the package itself is installed.
    """

    name: str
    reason: str
    lacking: str
    installed: bool

    @property
    def needed_by(self) -> str:
        """Return the key of `_NEEDED_BY`; the laboratory's is empty."""
        return next((key for key in _NEEDED_BY if key and self.reason.startswith(key)), "")


def add_options(doctor: argparse.ArgumentParser) -> None:
    doctor.set_defaults(run=_run)


def _run(_options: argparse.Namespace, _reporter: Reporter) -> int:
    """Print for each package of the laboratory and its tests whether this host has it.

    Raises HostError, with the command that installs it, if the laboratory needs
    one that is missing.
    """
    packages = _packages()
    for key, (title, _) in _NEEDED_BY.items():
        print(f"{title}:")
        for package in packages:
            if package.needed_by == key:
                state = "MISSING" if package.lacking else "ok"
                print(f"  {state:9}{package.name:24}{package.reason.removeprefix(key)}")
        print()
    lacking = [package for package in packages if package.lacking]
    if needed := [package for package in lacking if not package.needed_by]:
        raise HostError(f"the laboratory does not work here: {_remedy(needed)}.")
    if shutil.which(QEMU):
        check_plugins()
    print("The laboratory works here.")
    if lacking:
        keys = {package.needed_by for package in lacking}
        without = ", ".join(what for key, (_, what) in _NEEDED_BY.items() if key in keys)
        print(
            f"Some things do not work here, because packages are missing: {without}. "
            f"For them, {_remedy(lacking)}."
        )
    return 0


def _packages() -> list[Requirement]:
    packages = []
    for line in output([REPOSITORY / "setup", "list"]).splitlines():
        _, name, reason, lacking, state = (*line.split("\t"), "", "")[:5]
        packages.append(Requirement(name, reason, lacking, state == "installed"))
    return packages


def _remedy(lacking: Sequence[Requirement]) -> str:
    """Return what to do about missing packages, as the end of a sentence."""
    steps = []
    if absent := [package for package in lacking if not package.installed]:
        if shutil.which("apt-get"):
            root = "" if os.geteuid() == 0 else "as root "
            command = [
                "apt-get",
                "install",
                "--no-install-recommends",
                *(package.name for package in absent),
            ]
            steps.append(f"{root}run `{shlex.join(command)}`")
        else:
            tools = " ".join(package.lacking for package in absent)
            steps.append(f"install the packages that provide {', '.join(tools.split())}")
    for package in lacking:
        if package.installed:
            steps.append(
                f"add the directory that holds {package.lacking.replace(' ', ' and ')} to PATH "
                f"({package.name} is installed)"
            )
    return ", and ".join(steps)
