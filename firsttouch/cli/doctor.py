# SPDX-License-Identifier: GPL-2.0
"""`firsttouch doctor`: what this host lacks, and the one command that installs it."""

from __future__ import annotations

import argparse
import os

from firsttouch.cli.options import Commands
from firsttouch.errors import HostError
from firsttouch.places import REPOSITORY
from firsttouch.processes import output
from firsttouch.progress import Reporter


def add_command(commands: Commands) -> None:
    """Add `firsttouch doctor`."""
    doctor = commands.add_parser(
        "doctor", help="what this host lacks, and the command that installs it"
    )
    doctor.set_defaults(run=_run)


def _run(_options: argparse.Namespace, _reporter: Reporter) -> int:
    """Print of each package in packages.list whether it is installed.

    Raises HostError, with the command that installs what is missing.
    """
    missing = []
    # A line for each package that this host needs: ok or MISSING, name, reason.
    for line in output([REPOSITORY / "setup", "list"]).splitlines():
        state, name, reason = line.split("\t")
        print(f"{state:8}{name:28}{reason}")
        if state == "MISSING":
            missing.append(name)
    if missing:
        root = "" if os.geteuid() == 0 else "as root "
        raise HostError(
            f"this host lacks {len(missing)} packages: {root}run "
            f"`apt-get install --no-install-recommends {' '.join(missing)}`."
        )
    return 0
