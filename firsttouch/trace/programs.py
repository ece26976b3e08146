# SPDX-License-Identifier: GPL-2.0
"""Traces a list of Debian's programs, on this host or in an arm64 guest of the laboratory.

docs/evidence/programs.toml has the list. Each program runs alone, from its
start to its end, with the packages as its root directory.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from firsttouch.build.disks import ACCOUNTS, MOUNT_POINTS, RootDisk
from firsttouch.build.images import KernelImage
from firsttouch.build.packages import unpack
from firsttouch.build.programs import build_init, build_recorder
from firsttouch.build.sources import debian_source
from firsttouch.catalog.experiments import ARM64, Packages
from firsttouch.catalog.machines import DEFAULT_MACHINE, load_machine
from firsttouch.catalog.releases import load_release
from firsttouch.errors import GuestError, HostError
from firsttouch.lab.plan import DEFAULT_RELEASE
from firsttouch.progress import Reporter
from firsttouch.tables import read_toml
from firsttouch.trace.reading import read_recording
from firsttouch.finder.sites import Trace
from firsttouch.vm.guest import Guest
from firsttouch.vm.supervision import log_end, run_guest

# Seconds; the longest takes a hundredth of it on an idle host.
_PATIENCE = 600
_SILENCE = 900.0
_RECORDER, _SCRIPTS, _DATA = "/ftrecord", "/scripts", "/tmp/trace.data"
_DISK = "/data"


@dataclass(frozen=True)
class Program:
    """A program: what it is called in tables, and the shell script that runs it."""

    name: str
    script: str


@dataclass(frozen=True)
class Programs:
    """A list of programs, and the packages that they are from."""

    packages: Packages
    programs: tuple[Program, ...]

    def named(self, words: str) -> Programs:
        """Return those whose names have `words`."""
        return replace(self, programs=tuple(p for p in self.programs if words in p.name))


def load_programs(file: Path) -> Programs:
    """Return the list in a TOML file; UserError, which names the key, if it is wrong."""
    table = read_toml(file)
    found = []
    for entry in table.tables("program"):
        found.append(Program(entry.take("name", str), entry.take("script", str)))
        entry.done()
    packages = Packages(table.take("suite", str), table.strings("packages"))
    table.done()
    return Programs(packages, tuple(found))


def trace_here(listed: Programs, reporter: Reporter) -> Iterator[tuple[Program, Trace]]:
    """Yield the trace of each program on this host.

    Raises HostError if it is not x86-64, or this process not root's, if a
    program fails, or if its packages cannot be fetched.
    """
    if os.geteuid() or platform.machine() != "x86_64":
        raise HostError("programs get their own root directory: run it as root, on x86-64.")
    unpacked = unpack(replace(listed.packages, architecture="amd64"), reporter)
    recorder = build_recorder(reporter)
    with tempfile.TemporaryDirectory(prefix="firsttouch-root-") as scratch:
        root, script, data = (Path(scratch, name) for name in ("root", "script", "data"))
        _make_root(unpacked, root)
        for program in listed.programs:
            reporter.say(f"Tracing {program.name}")
            script.write_text(program.script)
            subprocess.run(
                [recorder, "-r", root, "-o", data, "-f", script],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=True,
                timeout=_PATIENCE,
            )
            yield program, _checked(program, read_recording(data, root).trace)


def _make_root(unpacked: Path, root: Path) -> None:
    """Make a root directory of unpacked packages. A copy, since programs may write to it."""
    shutil.copytree(unpacked, root, symlinks=True)
    for name in ("bin", "lib", "lib64", "sbin"):
        if not (root / name).exists():
            (root / name).symlink_to(f"usr/{name}")
    for name in MOUNT_POINTS:
        (root / name).mkdir(parents=True, exist_ok=True)
    for name, text in ACCOUNTS.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)


def _checked(program: Program, trace: Trace) -> Trace:
    """Return a trace; HostError if the program failed, or if faults were lost."""
    if trace.status:
        raise HostError(f"{program.name} ended with status {trace.status:#x}: see its script.")
    if trace.lost:
        raise HostError(f"{program.name}: {trace.lost} faults were lost: run it again.")
    return trace


def trace_in_guest(
    listed: Programs, logs: Path, reporter: Reporter
) -> Iterator[tuple[Program, Trace]]:
    """Yield the trace of each program in a guest: arm64, the stock kernel, one CPU.

    Raises GuestError if the guest or a program fails.
    """
    packages = replace(listed.packages, architecture=ARM64)
    source = debian_source(load_release(DEFAULT_RELEASE), reporter)
    image = KernelImage(source, changed=False).obtain(reporter) / "Image"
    unpacked, disk = unpack(packages, reporter), RootDisk(packages).obtain(reporter)
    recorder, init = build_recorder(reporter, native=False), build_init(reporter)
    with tempfile.TemporaryDirectory(prefix="firsttouch-scripts-") as scratch:
        files = {_RECORDER: recorder}
        commands = []
        for number, program in enumerate(listed.programs):
            script = Path(scratch, str(number))
            script.write_text(program.script)
            files[f"{_SCRIPTS}/{number}"] = script
            commands += [
                f"{_RECORDER} -r {_DISK} -o {_DATA} -f {_SCRIPTS}/{number}",
                f"{_RECORDER} -x {_DATA}",
            ]
        machine = load_machine(DEFAULT_MACHINE)
        guest = Guest(image, init, machine, (), tuple(commands), files, disk=disk)
        log = logs / "doubles.log"
        reporter.say(f"Tracing {len(listed.programs)} programs in a guest; minutes")
        ended = run_guest(guest, log, silence=_SILENCE)
        for program, done in zip(listed.programs, ended.commands[1::2], strict=True):
            if done.status or not done.lines:
                raise GuestError(f"{program.name} left no trace in the guest", log_end(log))
            data = Path(scratch, "data")
            data.write_bytes(bytes.fromhex(done.lines[0]))
            yield program, _checked(program, read_recording(data, unpacked).trace)
