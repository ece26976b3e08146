# SPDX-License-Identifier: GPL-2.0
"""The arm64 compiler of this machine: native on arm64, a cross compiler elsewhere."""

from __future__ import annotations

import functools
import platform
import shutil

from firsttouch.errors import MachineError
from firsttouch.processes import output


def cross_compile() -> str:
    """Return the prefix of the arm64 tools, as kernel makefiles take it in CROSS_COMPILE."""
    return "" if platform.machine() == "aarch64" else "aarch64-linux-gnu-"


@functools.cache
def compiler_identity(*, native: bool = False) -> str:
    """Return the first line of what the arm64 compiler, or this machine's own, says of itself.

    Raises MachineError if it is not installed.
    """
    compiler = "gcc" if native else f"{cross_compile()}gcc"
    if shutil.which(compiler) is None:
        raise MachineError(f"the compiler {compiler} is missing: run ./setup as root.")
    return output([compiler, "--version"]).splitlines()[0]
