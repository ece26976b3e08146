# SPDX-License-Identifier: GPL-2.0
"""What this machine lacks, and the one command that installs it."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from firsttouch.errors import MachineError
from firsttouch.processes import output
from firsttouch.build.sources import REPOSITORY


@dataclass(frozen=True)
class Requirement:
    """A Debian package that the laboratory uses, and why."""

    package: str
    reason: str


def requirements(
    architecture: str, listing: Path = REPOSITORY / "packages.list"
) -> list[Requirement]:
    """Return what packages.list names for a Debian `architecture`, such as ``amd64``."""
    wanted = []
    for line in listing.read_text().splitlines():
        match = re.fullmatch(
            r"(?P<name>[a-z0-9.+-]+)(?:\s+\[(?P<only>[^]]+)\])?\s*#\s*(?P<why>.*)", line
        )
        if not match:
            continue
        only = match["only"]
        if only and (only[1:] == architecture if only.startswith("!") else only != architecture):
            continue
        wanted.append(Requirement(match["name"], match["why"]))
    return wanted


def is_installed(package: str) -> bool:
    """Tell whether the Debian package is installed on this machine."""
    listed = subprocess.run(
        ["dpkg-query", "-W", "-f", "${db:Status-Status}", package],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return listed.stdout == "installed"


def examine(say: Callable[[str], None]) -> None:
    """Say of each requirement whether it is there.

    Raises MachineError, with the command that installs what is missing.
    """
    wanted = requirements(output(["dpkg", "--print-architecture"]).strip())
    missing = [need for need in wanted if not is_installed(need.package)]
    for need in wanted:
        say(f"{'MISSING' if need in missing else 'ok':8}{need.package:28}{need.reason}")
    if missing:
        names = " ".join(need.package for need in missing)
        root = "" if os.geteuid() == 0 else "as root "
        raise MachineError(
            f"this machine lacks {len(missing)} packages: {root}run "
            f"`apt-get install --no-install-recommends {names}`."
        )
