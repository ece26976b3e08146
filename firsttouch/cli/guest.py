# SPDX-License-Identifier: GPL-2.0
"""`firsttouch guest`: a shell in a guest."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from firsttouch.building.apt import unpack
from firsttouch.building.cpio import archive
from firsttouch.building.host_tools import QEMU
from firsttouch.building.kernel import obtain_image
from firsttouch.building.programs import build_ftbench
from firsttouch.building.source import debian_source, user_source
from firsttouch.catalog.arms import load_arm
from firsttouch.catalog.experiments import Packages
from firsttouch.catalog.machines import DEFAULT_MACHINE, Machine, load_machine
from firsttouch.catalog.releases import load_release
from firsttouch.cli.options import add_source, release_of
from firsttouch.errors import UserError
from firsttouch.progress import Reporter
from firsttouch.vm.guest import Guest
from firsttouch.vm.qemu import board_arguments, console_archive, inputs

_BUSYBOX = Packages("trixie", ("busybox-static",))


def add_options(guest: argparse.ArgumentParser) -> None:
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
        raise UserError("standard input is no terminal: run `firsttouch guest` in one.")
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


_INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /tmp
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sysfs /sys
/bin/busybox mount -t devtmpfs devtmpfs /dev
/bin/busybox mount -t tmpfs tmpfs /tmp
/bin/busybox mount -t debugfs debugfs /sys/kernel/debug 2> /dev/null
/bin/busybox --install -s /bin
export PATH=/bin:/ HOME=/tmp TERM={term} PS1={prompt}
cd /tmp
stty rows {rows} cols {columns}
setsid cttyhack sh
poweroff -f
"""


def run_shell(
    image: Path, busybox: Path, ftbench: Path, machine: Machine, boot: Sequence[str], prompt: str
) -> int:
    """Run a shell of `busybox` in a guest on this terminal; return QEMU's exit status.

    `boot` is added to the kernel's command line. Ctrl-A x ends the guest.
    """
    # Errors only; dmesg shows the whole log.
    guest = Guest(image, busybox, machine, (*boot, "loglevel=3"), (), timing="interleaved")
    term, shown = os.environ.get("TERM", "vt100"), f"{prompt}:\\w# "
    columns, rows = shutil.get_terminal_size()
    init = _INIT.format(
        term=shlex.quote(term), prompt=shlex.quote(shown), rows=rows, columns=columns
    )
    files = {"/init": init.encode()}
    files |= {"/bin/busybox": busybox.read_bytes(), "/ftbench": ftbench.read_bytes()}
    with tempfile.TemporaryDirectory(prefix="firsttouch-guest-") as folder:
        disk, tree = Path(folder, "initramfs"), Path(folder, "tree")
        disk.write_bytes(console_archive() + archive(files))
        tree.write_bytes(inputs(guest).blobs["device tree"])
        # QEMU reads the keys from the terminal, Ctrl-C too.
        return subprocess.run(
            [QEMU, *board_arguments(guest), "-kernel", image, "-initrd", disk, "-dtb", tree,
             "-append", guest.command_line(), "-serial", "mon:stdio"],
            check=False,
        ).returncode  # fmt: skip
