# SPDX-License-Identifier: GPL-2.0
"""Traces the programs of experiments/doubles.toml on this host.

Each runs alone, from its start to its end, with the packages as its root
directory. `firsttouch lab --experiment doubles` does the same on arm64.
"""

from __future__ import annotations

import ctypes
import os
import platform
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from firsttouch.building.apt import unpack
from firsttouch.building.programs import ACCOUNTS, MOUNT_POINTS, build_recorder
from firsttouch.catalog.experiments import Packages
from firsttouch.errors import HostError
from firsttouch.progress import Reporter
from firsttouch.trace.reading import read_recording
from firsttouch.trace.sites import Trace

# Seconds; the longest takes a hundredth of it on an idle host.
_PATIENCE = 600
# Of linux/personality.h.
_ADDR_NO_RANDOMIZE = 0x0040000


@contextmanager
def program_root(wanted: Packages, reporter: Reporter, *more: Packages) -> Iterator[Path]:
    """Yield a root directory with packages; HostError if it is not x86-64, or not root.

    The files of `more` go over those of `wanted`.
    """
    if os.geteuid() or platform.machine() != "x86_64":
        raise HostError("programs get their own root directory: run it as root, on x86-64.")
    unpacked = [unpack(replace(each, architecture="amd64"), reporter) for each in (wanted, *more)]
    with tempfile.TemporaryDirectory(prefix="firsttouch-root-") as scratch:
        # A copy, since programs may write to it.
        root = Path(scratch, "root")
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
        yield root


def trace_script(
    name: str, script: str, root: Path, reporter: Reporter, *, huge: bool = False
) -> Trace:
    """Return the trace of a shell script with `root` as its root directory.

    It has no huge pages, unless `huge` leaves them to the host's setting. Raises
    HostError if the script fails, or if faults were lost.
    """
    with tempfile.TemporaryDirectory(prefix="firsttouch-script-") as scratch:
        data, file = Path(scratch, "data"), Path(scratch, "script")
        file.write_text(script)
        subprocess.run(
            [build_recorder(reporter), *([] if huge else ["-b"]), "-r", root, "-o", data,
             "-f", file],
            stdin=subprocess.DEVNULL, capture_output=True,
            check=True, timeout=_PATIENCE, preexec_fn=_settle,
        )  # fmt: skip
        trace = read_recording(data, root).trace
    if trace.status:
        raise HostError(f"{name} ended with status {trace.status:#x}: see its script.")
    if trace.lost:
        raise HostError(f"{name}: {trace.lost} faults were lost: run it again.")
    return trace


def _settle() -> None:
    """Take chance from this process and its children: no random addresses."""
    ctypes.CDLL(None).personality(_ADDR_NO_RANDOMIZE)
