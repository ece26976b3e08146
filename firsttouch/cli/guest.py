# SPDX-License-Identifier: GPL-2.0
"""`firsttouch guest`: a shell in a guest."""

from __future__ import annotations

import argparse
import sys

from firsttouch.building.apt import unpack
from firsttouch.building.kernel import obtain_image
from firsttouch.building.programs import build_ftbench
from firsttouch.building.source import debian_source, user_source
from firsttouch.catalog.arms import load_arm
from firsttouch.catalog.experiments import Packages
from firsttouch.catalog.machines import DEFAULT_MACHINE, load_machine
from firsttouch.catalog.releases import load_release
from firsttouch.cli.options import add_source, release_of
from firsttouch.errors import UserError
from firsttouch.progress import Reporter
from firsttouch.vm.shell import run_shell

_BUSYBOX = Packages("trixie", ("busybox-static",))


def add_options(guest: argparse.ArgumentParser) -> None:
    """Add the options of `firsttouch guest`."""
    guest.description = (
        "Boot a guest and run a shell in it, on this terminal. Ctrl-A x or `exit` ends the guest."
    )
    add_source(guest)
    guest.add_argument(
        "--arm", default="on", metavar="A", help="how the kernel is built and booted (default on)"
    )
    guest.add_argument(
        "--machine",
        default=DEFAULT_MACHINE,
        metavar="M",
        help=f"a machine of machines/ (default {DEFAULT_MACHINE})",
    )
    guest.set_defaults(run=_run)


def _run(options: argparse.Namespace, reporter: Reporter) -> int:
    arm, machine = load_arm(options.arm), load_machine(options.machine)
    if not sys.stdin.isatty():
        raise UserError(
            "standard input is no terminal: run `firsttouch guest` in one, or a guest's QEMU "
            "command by `firsttouch lab --show-qemu`."
        )
    if options.source:
        source = user_source(options.source, reporter)
    else:
        source = debian_source(load_release(release_of(options)), reporter)
    reporter.say("A shell in the guest, which has /ftbench. Ctrl-A x ends it.")
    return run_shell(
        image=obtain_image(arm.kernel, source, reporter),
        busybox=unpack(_BUSYBOX, reporter) / "usr/bin/busybox",
        ftbench=build_ftbench(reporter),
        machine=machine,
        boot=machine.boot_words(arm.boot),
        prompt=f"{source.release.name} {arm.name}",
    )
