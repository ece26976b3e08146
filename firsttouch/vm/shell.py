# SPDX-License-Identifier: GPL-2.0
"""A guest with a shell, on this terminal or for a script.

It runs in real time, as a user at a prompt expects; the clock of cells counts
instructions.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from firsttouch.building.host_tools import QEMU
from firsttouch.catalog.machines import Machine
from firsttouch.processes import child_process
from firsttouch.vm.guest import Guest
from firsttouch.vm.initramfs import archive, console_archive
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
{run}
poweroff -f
"""
# The kernel's last message, which it prints at any log level; before it the time, if kernels
# are configured so.
_LAST_MESSAGE = re.compile(r"(\[ *\d+\.\d+\] )?reboot: Power down")
_TERMINAL = "stty rows {rows} cols {columns}\nsetsid cttyhack sh"
# -onlcr: no carriage return at the end of a line of the script's output.
_SCRIPT = "stty -onlcr < /dev/console\nsh /script < /dev/null"


@dataclass(frozen=True)
class Terminal:
    """The terminal that a shell runs on."""

    name: str
    rows: int
    columns: int


@dataclass(frozen=True)
class Shell:
    """A guest that runs a shell of `busybox`; `boot` is added to the kernel's command line."""

    image: Path
    busybox: Path
    ftbench: Path
    machine: Machine
    boot: tuple[str, ...]
    prompt: str

    def run(self, terminal: Terminal | None, script: str = "") -> int:
        """Run the shell on `terminal`, or `script` if that is None; return QEMU's exit status.

        The console of the guest is standard output. Ctrl-A x ends the guest.
        """
        guest = Guest(
            self.image,
            self.busybox,
            self.machine,
            # Errors only; dmesg shows the whole log.
            (*self.boot, "loglevel=3"),
            (),
            timing="interleaved",
        )
        with tempfile.TemporaryDirectory(prefix="firsttouch-guest-") as folder:
            disk, tree = Path(folder, "initramfs"), Path(folder, "tree")
            disk.write_bytes(self._archive(terminal, script))
            tree.write_bytes(inputs(guest).blobs["device tree"])
            command = [
                QEMU, *board_arguments(guest),
                "-kernel", str(self.image), "-initrd", str(disk), "-dtb", str(tree),
                "-append", guest.command_line(),
                "-serial", "mon:stdio" if terminal else "stdio",
            ]  # fmt: skip
            if terminal:
                # QEMU reads the keys from the terminal, Ctrl-C too.
                return subprocess.run(command, check=False).returncode
            with child_process(command, stdout=subprocess.PIPE, stderr=sys.stderr.fileno()) as qemu:
                assert qemu.stdout is not None
                for line in qemu.stdout:
                    if not _LAST_MESSAGE.match(line):
                        print(line, end="", flush=True)
                return qemu.wait()

    def _archive(self, terminal: Terminal | None, script: str) -> bytes:
        run = _SCRIPT
        if terminal:
            run = _TERMINAL.format(rows=terminal.rows, columns=terminal.columns)
        init = _INIT.format(
            term=shlex.quote(terminal.name if terminal else "dumb"),
            prompt=shlex.quote(f"{self.prompt}:\\w# "),
            run=run,
        )
        files = {
            "/init": init.encode(),
            "/bin/busybox": self.busybox.read_bytes(),
            "/ftbench": self.ftbench.read_bytes(),
            "/script": script.encode(),
        }
        return console_archive() + archive(files)
