# SPDX-License-Identifier: GPL-2.0
"""`firsttouch guest`: a shell or a command in a guest."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from firsttouch.building.apt import unpack
from firsttouch.building.host_tools import QEMU
from firsttouch.building.kernel import obtain_image
from firsttouch.building.program_root import (
    PROGRAM,
    Member,
    members_of,
    with_folders,
    write_members,
)
from firsttouch.building.programs import build_ftbench
from firsttouch.building.source import debian_source, user_source
from firsttouch.catalog.arms import BASE, load_arm
from firsttouch.catalog.experiments import Packages
from firsttouch.catalog.machines import DEFAULT_MACHINE, load_machine
from firsttouch.catalog.releases import load_release
from firsttouch.cli.options import add_source, option, release_of, size_of
from firsttouch.errors import GuestError, UserError
from firsttouch.processes import output
from firsttouch.progress import Reporter
from firsttouch.vm.guest import MEMORY, Guest, port_for
from firsttouch.vm.qemu import RESULTS, board_arguments, console_archive, inputs, results_port

_BUSYBOX = Packages("trixie", ("busybox-static",))


def add_options(guest: argparse.ArgumentParser) -> None:
    guest.description = (
        "Boot a guest and run a shell in it on this terminal, or a command. The exit status is "
        "that of the shell or the command. Ctrl-A x ends the guest."
    )
    add_source(guest)
    option(guest, "--arm A", "how the kernel is built and booted (default on)")
    option(
        guest, "--kernel IMAGE",
        f"boot this arm64 image, with the boot words of {BASE} or of --arm; nothing is built",
        kind=Path,
    )  # fmt: skip
    option(
        guest, "--machine M", f"a machine of machines/ (default {DEFAULT_MACHINE})",
        default=DEFAULT_MACHINE,
    )  # fmt: skip
    option(guest, "--exec CMD", "run a command by busybox's shell instead of a shell")
    option(
        guest, "--share DIR",
        "copy a folder to /share, and back at the end what was changed or made there", kind=Path,
    )  # fmt: skip
    option(guest, "--cpus N", "CPUs of the guest (default 1)", kind=int, default=1)
    option(guest, "--memory BYTES", "memory of the guest (default 4G)")
    guest.set_defaults(run=_run)


def _run(options: argparse.Namespace, reporter: Reporter) -> int:
    arm = load_arm(options.arm or (BASE if options.kernel else "on"))
    machine = load_machine(options.machine)
    if options.exec is None and not sys.stdin.isatty():
        raise UserError("standard input is no terminal: run a command by --exec 'CMD'.")
    for name, path, exists in (
        ("--kernel", options.kernel, Path.is_file), ("--share", options.share, Path.is_dir),
    ):  # fmt: skip
        if path and not exists(path):
            raise UserError(f"{name} {path} does not exist: give one that does.")
    if options.kernel and (options.release or options.source):
        raise UserError("--kernel is an image: drop --release and --source.")
    if options.cpus < 1:
        raise UserError(f"--cpus {options.cpus}: give at least 1.")
    name, image = options.kernel and options.kernel.name, options.kernel
    if not image:
        if options.source:
            source = user_source(options.source, reporter)
        else:
            source = debian_source(load_release(release_of(options)), reporter)
        name, image = source.release.name, obtain_image(arm.kernel, source, reporter)
    busybox = unpack(_BUSYBOX, reporter) / "usr/bin/busybox"
    guest = Guest(
        # Errors only; dmesg shows the whole log.
        image, busybox, machine, (*machine.boot_words(arm.boot), "loglevel=3"), (),
        timing="interleaved", cpus=options.cpus,
        # A kernel without its driver gives no exit status; most distributions have this one.
        port="pci" if options.kernel else port_for(arm.kernel),
        memory=size_of("--memory", options.memory) or MEMORY,
    )  # fmt: skip
    files: dict[str, Member] = {
        "init": (PROGRAM, _init(options.exec, f"{name} {arm.name}").encode()),
        "bin/busybox": (PROGRAM, busybox),
        "ftbench": (PROGRAM, build_ftbench(reporter)),
        "share": (stat.S_IFDIR | 0o755, b""),
    }
    if options.share:
        files |= {f"share/{inside}": member for inside, member in members_of(options.share).items()}
    if options.exec is None:
        reporter.say("A shell in the guest, which has /ftbench. Ctrl-A x ends it.")
    return _boot(guest, files, options.share, is_shell=options.exec is None)


# The results channel gets the exit status, then an archive of what changed in /share: all that was
# copied there has time 0.
_INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /tmp
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sysfs /sys
/bin/busybox mount -t devtmpfs devtmpfs /dev
/bin/busybox mount -t tmpfs tmpfs /tmp
/bin/busybox mount -t debugfs debugfs /sys/kernel/debug 2> /dev/null
/bin/busybox --install -s /bin
export PATH=/bin:/ HOME=/tmp TERM={term} PS1={prompt}
port=$(grep -lx results /sys/class/virtio-ports/*/name)
date -s @{now} > /dev/null
touch -d @1 /copied
cd /tmp
{run}
{{ echo $?; cd /share; find . ! -type d -newer /copied -exec tar -c {{}} +; }} \\
	> /dev/$(basename ${{port%/name}})
echo 0 > /proc/sys/kernel/printk
poweroff -f
"""
_SHELL = "stty rows {rows} cols {columns}; setsid cttyhack sh"
_COMMAND = "stty -opost; sh -c {command} < /dev/null"


def _init(command: str | None, prompt: str) -> str:
    columns, rows = shutil.get_terminal_size()
    run = _SHELL.format(rows=rows, columns=columns)
    if command is not None:
        run = _COMMAND.format(command=shlex.quote(command))
    term = shlex.quote(os.environ.get("TERM", "vt100"))
    return _INIT.format(
        now=int(time.time()), term=term, prompt=shlex.quote(f"{prompt}:\\w# "), run=run
    )


def _boot(guest: Guest, files: dict[str, Member], share: Path | None, *, is_shell: bool) -> int:
    """Boot a guest with `files` on this terminal; return the exit status of its command.

    Raises GuestError if the guest ends before the command.
    """
    with tempfile.TemporaryDirectory(prefix="firsttouch-guest-") as folder:
        disk, tree, results = (Path(folder, name) for name in ("initramfs", "tree", RESULTS))
        with disk.open("wb") as file:
            file.write(console_archive())
            file.writelines(write_members(with_folders(files)))
        tree.write_bytes(inputs(guest).blobs["device tree"])
        words: Sequence[str | Path] = [
            QEMU, *board_arguments(guest), "-kernel", guest.image, "-initrd", disk, "-dtb", tree,
            "-append", guest.command_line(), *results_port(guest, str(results)),
            "-serial", "mon:stdio" if is_shell else "stdio",
        ]  # fmt: skip
        # QEMU reads the keys from the terminal, Ctrl-C too.
        done = subprocess.run(words, check=False, stdin=None if is_shell else subprocess.DEVNULL)
        status, newline, changed = results.read_bytes().partition(b"\n")
        if not newline:
            if is_shell or done.returncode:
                return done.returncode
            raise GuestError("The guest ended before the command: see its messages above.")
        if share and changed:
            archive = Path(folder, "changed.tar")
            archive.write_bytes(changed)
            # Several archives, if the names do not fit into one command.
            words = ["--ignore-zeros", "--no-same-owner", "-f", archive, "-C", share.resolve()]
            output(["tar", "-x", *words])
        return int(status)
