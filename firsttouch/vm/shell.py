# SPDX-License-Identifier: GPL-2.0
"""A guest with a shell, on this terminal.

It runs in real time, as a user at a prompt expects; the clock of cells counts
instructions.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from firsttouch.building.cpio import archive
from firsttouch.building.host_tools import QEMU
from firsttouch.catalog.machines import Machine
from firsttouch.vm.guest import Guest
from firsttouch.vm.initramfs import console_archive
from firsttouch.vm.qemu import board_arguments, inputs

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
