# SPDX-License-Identifier: GPL-2.0
"""Traces the programs of experiments/doubles.toml on this host.

Each runs alone, from its start to its end, with the packages as its root
directory. `firsttouch lab --experiment doubles` does the same on arm64.
"""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from docs.evidence.draw.rebuilt import Rebuilt
from firsttouch.building.disks import ACCOUNTS, MOUNT_POINTS
from firsttouch.building.packages import unpack
from firsttouch.building.programs import build_recorder
from firsttouch.catalog.experiments import Packages
from firsttouch.errors import HostError
from firsttouch.finder.sites import Trace
from firsttouch.progress import Reporter
from firsttouch.trace.reading import read_recording

# Seconds; the longest takes a hundredth of it on an idle host.
_PATIENCE = 600
# Of linux/personality.h.
_ADDR_NO_RANDOMIZE = 0x0040000


@dataclass(frozen=True)
class Traced:
    """A program of the list, by name, and its trace."""

    program: str
    trace: Trace


def trace_here(
    packages: Packages,
    scripts: Mapping[str, str],
    reporter: Reporter,
    rebuilt: Iterable[Rebuilt] = (),
) -> Iterator[Traced]:
    """Yield the trace of each of `scripts` here, with `rebuilt` in place of Debian's programs.

    Raises HostError if it is not x86-64, or this process not root's, if a
    program fails, or if its packages cannot be fetched; BuildError if one of
    `rebuilt` does not build.
    """
    built = {program.path: program.obtain(reporter) for program in rebuilt}
    with program_root(packages, reporter) as root:
        for path, file in built.items():
            (root / path).unlink()
            shutil.copy(file, root / path)
        for name, script in scripts.items():
            reporter.say(f"Tracing {name}")
            yield Traced(name, trace_script(name, script, root, reporter))


@contextmanager
def program_root(packages: Packages, reporter: Reporter, *more: Packages) -> Iterator[Path]:
    """Yield a root directory with packages; HostError as for `trace_here`.

    The files of `more` go over those of `packages`.
    """
    if os.geteuid() or platform.machine() != "x86_64":
        raise HostError("programs get their own root directory: run it as root, on x86-64.")
    unpacked = [
        unpack(replace(wanted, architecture="amd64"), reporter) for wanted in (packages, *more)
    ]
    with tempfile.TemporaryDirectory(prefix="firsttouch-root-") as scratch:
        root = Path(scratch, "root")
        _make_root(unpacked, root)
        yield root


def trace_script(
    name: str, script: str, root: Path, reporter: Reporter, *, huge: bool = False
) -> Trace:
    """Return the trace of a shell script with `root` as its root directory.

    It has no huge pages, unless `huge` leaves them to the host's setting. Raises
    HostError if the script fails, or if faults were lost.
    """
    with tempfile.TemporaryDirectory(prefix="firsttouch-script-") as scratch:
        data = Path(scratch, "data")
        record_script(script, root, data, reporter, huge=huge)
        trace = read_recording(data, root).trace
    if trace.status:
        raise HostError(f"{name} ended with status {trace.status:#x}: see its script.")
    if trace.lost:
        raise HostError(f"{name}: {trace.lost} faults were lost: run it again.")
    return trace


def record_script(
    script: str, root: Path, data: Path, reporter: Reporter, *, huge: bool = False
) -> None:
    """Record the faults of a shell script in the file `data`, as `trace_script` says."""
    with tempfile.NamedTemporaryFile("w", prefix="firsttouch-script-") as file:
        file.write(script)
        file.flush()
        subprocess.run(
            [build_recorder(reporter), *([] if huge else ["-b"]), "-r", root, "-o", data,
             "-f", file.name],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
            timeout=_PATIENCE,
            preexec_fn=_settle,
        )  # fmt: skip


def _settle() -> None:
    """Take chance from this process and its children: no random addresses."""
    ctypes.CDLL(None).personality(_ADDR_NO_RANDOMIZE)


def _make_root(unpacked: Iterable[Path], root: Path) -> None:
    """Make a root directory of unpacked packages. A copy, since programs may write to it."""
    root.mkdir()
    for folder in unpacked:
        subprocess.run(["cp", "-a", f"{folder}/.", root], check=True)
    for name in ("bin", "lib", "lib64", "sbin"):
        if not (root / name).exists():
            (root / name).symlink_to(f"usr/{name}")
    for name in MOUNT_POINTS:
        (root / name).mkdir(parents=True, exist_ok=True)
    for name, text in ACCOUNTS.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
