# SPDX-License-Identifier: GPL-2.0
"""The kernel that an arm boots, to be built or fetched."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

from firsttouch.building.distribution import DebianKernel
from firsttouch.building.images import SYMBOLS, VMLINUX, KernelImage
from firsttouch.building.sources import KernelSource
from firsttouch.catalog.arms import Kernel
from firsttouch.errors import BuildError
from firsttouch.files import digest_file
from firsttouch.progress import Reporter


def kernel_of(kernel: Kernel, source: KernelSource) -> KernelImage | DebianKernel:
    """Return how arms get that `kernel`, for the release of `source`."""
    if kernel.kind == "debian":
        return DebianKernel(source.release, source.version)
    return KernelImage(
        source,
        changed=kernel.kind.endswith("changed"),
        tiny=kernel.kind.startswith("tiny"),
        fragments=kernel.fragments,
        patches=kernel.patches,
        label=kernel.label,
    )


def obtain_image(
    kernel: Kernel, source: KernelSource, reporter: Reporter, logs: Path | None = None
) -> Path:
    """Return the image that guests boot, building or fetching it if the store lacks it.

    `logs` gets a copy of a build's log. Raises BuildError, HostError if the
    image cannot be fetched, and UserError if a patch does not apply.
    """
    found = kernel_of(kernel, source)
    if isinstance(found, DebianKernel):
        return found.obtain(reporter) / "Image"
    # Many kernels may have the user's changes; their recipes tell them apart.
    own = f"-{found.entry().path.name[:8]}" if kernel.label else ""
    log = logs / f"build-{source.version}-{kernel.kind}{own}.log" if logs else None
    return found.obtain(reporter, log) / "Image"


def keep_vmlinux(kernel: Kernel, source: KernelSource, reporter: Reporter) -> Path | None:
    """Return vmlinux with debug information beside the image of `kernel`, built if necessary.

    It has the image's code at the image's addresses. Returns None for a kernel
    that is not built here. Raises BuildError also if the addresses differ.
    """
    made = kernel_of(kernel, source)
    if isinstance(made, DebianKernel):
        return None
    image = made.obtain(reporter)
    debug = replace(made, debug=True).obtain(reporter)
    if digest_file(image / SYMBOLS) != digest_file(debug / SYMBOLS):
        raise BuildError(
            f"{made.title} has other addresses when it is built with debug information: "
            "leave out --keep-vmlinux."
        )
    beside = image / VMLINUX
    with contextlib.suppress(FileExistsError):
        beside.hardlink_to(debug / VMLINUX)
    return beside
