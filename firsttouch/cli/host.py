# SPDX-License-Identifier: GPL-2.0
"""`firsttouch doctor`, `store` and `completion`: what this host lacks, its store, its shell."""

from __future__ import annotations

import argparse
import os
import shutil
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import argcomplete
from argcomplete.completers import FilesCompleter
from argcomplete.shell_integration import shellcode

from firsttouch.building.host_tools import QEMU, check_plugins
from firsttouch.building.store import OUTCOMES, Item, items, prune, store_root
from firsttouch.catalog.arms import arm_names
from firsttouch.catalog.experiments import experiment_names
from firsttouch.catalog.machines import machine_names
from firsttouch.catalog.releases import release_names
from firsttouch.cli import add_command
from firsttouch.cli.options import size_of
from firsttouch.errors import HostError, UserError
from firsttouch.files import REPOSITORY
from firsttouch.processes import output
from firsttouch.progress import Reporter

# Who needs a package, by how its reason begins; the laboratory itself where it begins otherwise.
_OPTIONAL = {
    "faster: ": "The laboratory is faster with",
    "package: ": "`firsttouch kernel package` also needs",
    "tests: ": "The tests of make test also need",
    "regress: ": "The tests of make regress also need",
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
    def use(self) -> str:
        return next((use for use in _OPTIONAL if self.reason.startswith(use)), "")


def doctor_options(doctor: argparse.ArgumentParser) -> None:
    doctor.set_defaults(run=_doctor)


def _doctor(_options: argparse.Namespace, _reporter: Reporter) -> int:
    """Print for each package of the laboratory and its tests whether this host has it.

    Raises HostError, with the command that installs it, if the laboratory needs
    one that is missing.
    """
    packages = []
    for line in output([REPOSITORY / "setup", "list"]).splitlines():
        _, name, reason, missing, state = (*line.split("\t"), "", "")[:5]
        packages.append(Requirement(name, reason, missing, state == "installed"))
    for use, title in {"": "The laboratory needs", **_OPTIONAL}.items():
        print(f"{title}:")
        for package in packages:
            if package.use == use:
                state = "MISSING" if package.lacking else "ok"
                print(f"  {state:9}{package.name:24}{package.reason.removeprefix(use)}")
        print()
    lacking = [package for package in packages if package.lacking]
    if needed := [package for package in lacking if not package.use]:
        raise HostError(f"the laboratory does not work here: {_remedy(needed)}.")
    if shutil.which(QEMU):
        check_plugins()
    print("The laboratory works here.")
    if lacking:
        print(f"Optional packages are missing. To enable all features, {_remedy(lacking)}.")
    return 0


def _remedy(lacking: Sequence[Requirement]) -> str:
    steps = []
    if absent := [package for package in lacking if not package.installed]:
        if shutil.which("apt-get"):
            names = " ".join(package.name for package in absent)
            root = "" if os.geteuid() == 0 else "as root "
            steps.append(f"{root}run `apt-get install --no-install-recommends {names}`")
        else:
            tools = " ".join(package.lacking for package in absent)
            steps.append(f"install the packages that provide {', '.join(tools.split())}")
    if tools := " ".join(package.lacking for package in lacking if package.installed):
        steps.append(f"add the directories that hold {tools} to PATH")
    return ", and ".join(steps)


def store_options(store: argparse.ArgumentParser) -> None:
    actions = store.add_subparsers(required=True, metavar="ACTION")
    listing = add_command(actions, "list", "print the entries: kind, size, last use, name")
    listing.set_defaults(run=_list)
    pruning = add_command(actions, "prune", "remove the least recently used entries")
    help_line = "the size to reduce the store to; K, M and G are accepted"
    pruning.add_argument("--keep", required=True, metavar="BYTES", help=help_line)
    pruning.set_defaults(run=_prune)


def _list(_options: argparse.Namespace, _reporter: Reporter) -> int:
    listed = items()
    print(f"{store_root()}: {_size(sum(item.size for item in listed))}")
    _print(listed)
    return 0


def _prune(options: argparse.Namespace, _reporter: Reporter) -> int:
    # parse_size() refuses 0, but here it means to keep nothing.
    keep = 0 if options.keep == "0" else size_of("--keep", options.keep)
    if keep is None:
        raise UserError("--keep is missing: give how many bytes may stay, such as 20G.")
    removed = prune(keep)
    _print(removed)
    freed, left = sum(item.size for item in removed), sum(item.size for item in items())
    print(f"removed {_size(freed)}; {_size(left)} stay below {store_root()}")
    return 0


def _print(listed: Iterable[Item]) -> None:
    """Print a line for each entry, and one line for all outcomes, since there are very many."""
    outcomes = [item for item in listed if item.kind == OUTCOMES]
    for item in listed:
        if item.kind != OUTCOMES:
            _line(item.kind, item.size, item.used, item.title)
    if outcomes:
        size, used = sum(item.size for item in outcomes), max(item.used for item in outcomes)
        _line(OUTCOMES, size, used, f"outcomes of {len(outcomes):,} guests")


def _line(kind: str, size: int, used: float, title: str) -> None:
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(used))
    print(f"{kind:10}{_size(size):>11}  {when}  {title}")


def _size(size: int) -> str:
    """Return a size in the smallest unit that leaves at most four digits before the point."""
    value, unit = float(size), "B"
    for larger in ("KiB", "MiB", "GiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:,.0f} {unit}" if unit == "B" else f"{value:,.1f} {unit}"


_SHELLS = ("bash", "zsh", "fish")
# By option. They are no `choices`: the error of a command about an unknown name says more.
_NAMES = {
    "machine": machine_names,
    "experiment": experiment_names,
    "arm": arm_names,
    "guest": arm_names,
    "release": release_names,
}


def completion_options(completion: argparse.ArgumentParser) -> None:
    completion.description = "Write the script to where the shell looks for such scripts."
    completion.add_argument("shell", choices=_SHELLS, metavar="SHELL", help=", ".join(_SHELLS))
    completion.set_defaults(run=_completion)


def _completion(options: argparse.Namespace, _reporter: Reporter) -> int:
    print(shellcode(["firsttouch"], shell=options.shell))
    return 0


class _Names(FilesCompleter):
    def __call__(self, prefix: str, **about: object) -> list[str]:
        names = _NAMES.get(getattr(about["action"], "dest", ""))
        return names() if names else super().__call__(prefix, **about)


def complete(parser: argparse.ArgumentParser) -> None:
    """Print the words that can stand at the cursor, and exit; called by a shell's script."""
    argcomplete.autocomplete(parser, default_completer=_Names())
