# SPDX-License-Identifier: GPL-2.0
"""The kernel that an arm boots, by the arm's word for it."""

from __future__ import annotations

from pathlib import Path

from firsttouch.build.distribution import DebianKernel
from firsttouch.build.images import KernelImage
from firsttouch.build.sources import KernelSource
from firsttouch.catalog.arms import Kernel
from firsttouch.progress import Reporter


def kernel_of(kernel: Kernel, source: KernelSource) -> KernelImage | DebianKernel:
    """Return the kernel of arms with that `kernel`, for the release of `source`."""
    if kernel == "debian":
        return DebianKernel(source.release, source.version)
    return KernelImage(source, changed=kernel.endswith("changed"), tiny=kernel.startswith("tiny"))


def obtain_image(
    kernel: Kernel, source: KernelSource, reporter: Reporter, logs: Path | None = None
) -> Path:
    """Return the image that guests boot, building or fetching it if the store lacks it.

    `logs` gets a copy of a build's log. Raises BuildError, and HostError if
    the image cannot be fetched.
    """
    found = kernel_of(kernel, source)
    if isinstance(found, DebianKernel):
        return found.obtain(reporter) / "Image"
    log = logs / f"build-{source.version}-{kernel}.log" if logs else None
    return found.obtain(reporter, log) / "Image"
