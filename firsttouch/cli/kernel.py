# SPDX-License-Identifier: GPL-2.0
"""`firsttouch kernel`, `guest`, `store` and `doctor`: what is built, and what it needs."""

from __future__ import annotations

import argparse
import functools
import os
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from firsttouch.building.apt import unpack
from firsttouch.building.host_tools import QEMU, check_plugins, find_tool
from firsttouch.building.kernel import KernelImage, kernel_of
from firsttouch.building.overlay import all_series, write_series
from firsttouch.building.program_root import PROGRAM, Member, members_of, write_members
from firsttouch.building.programs import BENCH
from firsttouch.building.source import (
    FLAVOURS,
    Configuration,
    KernelSource,
    debian_source,
    user_source,
)
from firsttouch.building.store import OUTCOMES, Item, items, prune, store_root
from firsttouch.catalog.arms import BASE, Kernel, load_arm
from firsttouch.catalog.experiments import Packages
from firsttouch.catalog.kernels import load_release
from firsttouch.catalog.machines import DEFAULT_MACHINE, load_machine
from firsttouch.cli.options import SOURCE, add_actions, declare, exclude, release_of
from firsttouch.errors import GuestError, HostError, UserError
from firsttouch.files import REPOSITORY
from firsttouch.lab.plan import DEFAULT_RELEASE
from firsttouch.processes import output
from firsttouch.progress import Reporter
from firsttouch.vm.guest import Guest, port_for
from firsttouch.vm.qemu import board_arguments, console_archive, inputs, results_port

# In the header of arm64's Image: Documentation/arch/arm64/booting.rst. QEMU unpacks gzip.
_MAGIC, _MAGIC_AT, _GZIP = b"ARM\x64", 56, b"\x1f\x8b"
# How the reason of a package begins that the laboratory works without.
_OPTIONAL = ("faster: ", "package: ", "tests: ", "regress: ")
_PRUNE = "--keep BYTES  the size to reduce the store to, such as 20G"
_FETCH = f"""
--release R           a kernel release with hooks (default {DEFAULT_RELEASE})
--configuration FILE  use Debian's configuration from FILE and fetch nothing, for a host without apt
"""
_BUILD = f"""{SOURCE}
--arm NAME  the arm that boots it (default on)
"""
_PACKAGE = f"""{SOURCE}
--flavour {{{",".join(FLAVOURS)}}}  Debian's configuration (default {FLAVOURS[0]})
--stock  build it without the features
"""
_SERIES = f"""{SOURCE}
--feature NAME...  only the series of this feature (default: each)
--out DIR          each series goes to DIR/FEATURE; numbered patches there are replaced
                   (default series)
"""
_BUSYBOX = Packages("trixie", ("busybox-static",))
_GUEST = f"""{SOURCE}
--arm NAME      how the kernel is built and booted (default: on)
--kernel FILE   boot this arm64 image, with the boot words of {BASE} or of --arm; nothing is built
--machine M     a machine of machines/ (default {DEFAULT_MACHINE})
--exec CMD      run a command (by busybox sh) instead of an interactive shell
--share FOLDER  copy a folder to /share, and new and changed files back at the end
--cpus 1-8      CPUs of the guest (default 1)
--memory RAM    memory of the guest (default 4G)
"""


def source_of(options: argparse.Namespace, reporter: Reporter) -> KernelSource:
    if options.source:
        return user_source(options.source, reporter)
    return debian_source(load_release(release_of(options)), reporter)


def _fetch(options: argparse.Namespace, reporter: Reporter) -> int:
    release = load_release(options.release)
    configuration = Configuration(release)
    if options.configuration:
        print(configuration.give(options.configuration))
        return 0
    source = debian_source(release, reporter, newest=True)
    configuration.fetch(reporter)
    print(source.version)
    return 0


def _build(options: argparse.Namespace, reporter: Reporter) -> int:
    kernel = load_arm(options.arm).kernel
    print(kernel_of(kernel, source_of(options, reporter)).obtain(reporter))
    return 0


def _package(options: argparse.Namespace, reporter: Reporter) -> int:
    source = source_of(options, reporter)
    kernel = Kernel("stock" if options.stock else "changed")
    print(KernelImage(source, kernel, options.flavour).obtain(reporter))
    return 0


def _series(options: argparse.Namespace, reporter: Reporter) -> int:
    series = all_series()
    for name in options.feature:
        if name not in series:
            raise UserError(f"--feature {name}: no such series; use one of {', '.join(series)}.")
    try:
        # git would otherwise make up an address of the host.
        user = output(["git", "-c", "user.useConfigOnly=true", "var", "GIT_AUTHOR_IDENT"])
    except HostError:
        raise UserError("git has no user here: set git's user.name and user.email.") from None
    source = source_of(options, reporter)
    for name in options.feature or series:
        for file in write_series(source, series[name], options.out / name, user.rsplit(" ", 2)[0]):
            print(file)
    reporter.say(
        "Apply one series, or several in this order, by `git am -3 --empty=drop "
        f"{options.out}/FEATURE/*.patch`; -3 skips a patch that an earlier series has."
    )
    return 0


kernel_options = functools.partial(add_actions, actions={
    "fetch": (_fetch, "fetch the newest source of a release", _FETCH),
    "build": (_build, "build one image and print its path", _BUILD),
    "package": (_package, "build a Debian package and print its path", _PACKAGE),
    "series": (_series, "write the patch series for git am, as git's user", _SERIES),
})  # fmt: skip


def guest_options(guest: argparse.ArgumentParser) -> None:
    guest.description = (
        "Boot a guest and run a shell in it on this terminal, or a command. The exit status is "
        "that of the shell or the command. /ftbench is there; Ctrl-A x ends the guest."
    )
    declare(guest, _GUEST, _guest)


def _guest(options: argparse.Namespace, reporter: Reporter) -> int:
    arm = load_arm(options.arm or (BASE if options.kernel else "on"))
    machine = load_machine(options.machine)
    if options.exec is None and not sys.stdin.isatty():
        raise UserError("standard input is no terminal: run a command by --exec 'CMD'.")
    exclude(options, "kernel", "release", "source")
    name, image = options.kernel and options.kernel.name, options.kernel
    if image and not (
        (head := image.read_bytes()).startswith(_GZIP) or head[_MAGIC_AT:].startswith(_MAGIC)
    ):
        raise UserError(f"{image} is no image of an arm64 kernel: give arch/arm64/boot/Image.")
    if not image:
        source = source_of(options, reporter)
        name, image = source.release.name, kernel_of(arm.kernel, source).obtain(reporter)
    busybox = unpack(_BUSYBOX, reporter) / "usr/bin/busybox"
    guest = Guest(
        # Errors only; dmesg shows the whole log.
        image, busybox, machine, (*machine.boot_words(arm.boot), "loglevel=3"), (),
        timing="interleaved", cpus=options.cpus,
        # A kernel without its driver gives no exit status; most distributions have this one.
        port="pci" if options.kernel else port_for(arm.kernel),
        memory=options.memory,
    )  # fmt: skip
    files: dict[str, Member] = {
        "init": (PROGRAM, os.fsencode(_init(options.exec, f"{name} {arm.name}"))),
        "bin/busybox": (PROGRAM, busybox),
        "ftbench": (PROGRAM, BENCH.obtain(reporter)),
        "share": (stat.S_IFDIR | 0o755, b""),
    }
    if options.share:
        files |= {f"share/{inside}": member for inside, member in members_of(options.share).items()}
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
    # Files without names: nothing is left, however this process ends, and the guest ends with it.
    with (
        tempfile.TemporaryFile(buffering=0) as disk,
        tempfile.TemporaryFile(buffering=0) as tree,
        tempfile.TemporaryFile(buffering=0) as results,
    ):
        disk.write(console_archive())
        disk.writelines(write_members(files))
        tree.write(inputs(guest).blobs["device tree"])
        given = [file.fileno() for file in (disk, tree, results)]
        initrd, dtb, channel = (f"/dev/fd/{number}" for number in given)
        words: Sequence[str | Path] = [
            find_tool("setpriv"), "--pdeathsig", "KILL", QEMU, *board_arguments(guest),
            "-kernel", guest.image, "-initrd", initrd, "-dtb", dtb,
            "-append", guest.command_line(), *results_port(guest, channel),
            "-serial", "mon:stdio" if is_shell else "stdio",
        ]  # fmt: skip
        # QEMU reads the keys from the terminal, Ctrl-C too.
        keys = None if is_shell else subprocess.DEVNULL
        done = subprocess.run(words, check=False, stdin=keys, pass_fds=given)
        status, newline, changed = results.read().partition(b"\n")
    if not newline:
        if is_shell or done.returncode:
            return done.returncode
        raise GuestError("The guest ended before the command: see its messages above.")
    if share and changed:
        with tempfile.NamedTemporaryFile(buffering=0) as archive:
            archive.write(changed)
            # Several archives, if the names do not fit into one command.
            words = ["--ignore-zeros", "--no-same-owner", "-f", archive.name, "-C", share.resolve()]
            output(["tar", "-x", *words])
    return int(status)


def _doctor(_options: argparse.Namespace, _reporter: Reporter) -> int:
    """Print which packages this host has; HostError, with a remedy, if the laboratory lacks one."""
    # The tools that are missing, by package.
    needed, optional = dict[str, str](), dict[str, str]()
    for line in output([REPOSITORY / "setup", "list"]).splitlines():
        there, name, reason, tools = (*line.split("\t"), "")[:4]
        print(f"{there:9}{name:24}{reason}")
        if tools:
            (optional if reason.startswith(_OPTIONAL) else needed)[name] = tools
    if needed:
        raise HostError(f"the laboratory does not work here: {_remedy(needed)}.")
    if shutil.which(QEMU):
        check_plugins()
    print("The laboratory works here.")
    if optional:
        print(f"Optional packages are missing. To enable all features, {_remedy(optional)}.")
    return 0


doctor_options = functools.partial(declare, text="", run=_doctor)


def _remedy(lacking: Mapping[str, str]) -> str:
    if shutil.which("apt-get"):
        root = "" if os.geteuid() == 0 else "as root "
        return f"{root}run `apt-get install --no-install-recommends {' '.join(lacking)}`"
    tools = ", ".join(" ".join(lacking.values()).split())
    return f"install the packages that provide {tools}, or add them to PATH"


def _list(_options: argparse.Namespace, _reporter: Reporter) -> int:
    listed = items()
    print(f"{store_root()}: {_size(listed)}")
    _print(listed)
    return 0


def _prune(options: argparse.Namespace, _reporter: Reporter) -> int:
    if not options.keep:
        raise UserError("--keep is missing: give how many bytes may stay, such as 20G.")
    removed = prune(options.keep)
    _print(removed)
    print(f"removed {_size(removed)}; {_size(items())} left in {store_root()}")
    return 0


store_options = functools.partial(add_actions, actions={
    "list": (_list, "print the entries: kind, size, last use, name", ""),
    "prune": (_prune, "remove the least recently used entries", _PRUNE),
})  # fmt: skip


def _print(listed: Sequence[Item]) -> None:
    """Print a line for each entry, and one line for all outcomes, since there are very many."""
    outcomes = [item for item in listed if item.kind == OUTCOMES]
    for item in [*(item for item in listed if item.kind != OUTCOMES), *outcomes[:1]]:
        alike, title = [item], item.title
        if item.kind == OUTCOMES:
            alike, title = outcomes, f"outcomes of {len(outcomes):,} guests"
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(item.used))
        print(f"{item.kind:10}{_size(alike):>14}  {when}  {title}")


def _size(items: Iterable[Item]) -> str:
    return f"{sum(item.size for item in items) / (1 << 20):,.1f} MiB"
