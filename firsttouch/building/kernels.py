# SPDX-License-Identifier: GPL-2.0
"""The kernel that an arm boots, to be built or fetched."""

from __future__ import annotations

import contextlib
import re
from dataclasses import replace
from pathlib import Path

from firsttouch.building.distribution import DebianKernel
from firsttouch.building.images import SYMBOLS, VMLINUX, KernelImage
from firsttouch.building.sources import KernelSource
from firsttouch.catalog.architectures import load_architecture
from firsttouch.catalog.arms import Kernel
from firsttouch.errors import BuildError, UserError
from firsttouch.progress import Reporter
from firsttouch.quantities import format_list


def kernel_of(kernel: Kernel, source: KernelSource) -> KernelImage | DebianKernel:
    """Return how arms get that `kernel`, for the release of `source`.

    Raises UserError if its architecture has none of the kind, or not its series.
    """
    architecture = load_architecture(kernel.architecture)
    kinds = architecture.kernels
    if kernel.kind not in kinds:
        raise UserError(
            f"{kernel.kind} kernels are not for {kernel.architecture}: give arms that boot "
            f"{format_list(kinds, 9)} ones."
        )
    if kernel.series and kernel.series not in architecture.features:
        raise UserError(
            f"the series {kernel.series} changes nothing for {kernel.architecture}: give arms "
            f"with {format_list(architecture.features, 9)}."
        )
    if kernel.kind == "debian":
        return DebianKernel(source.release, source.version, kernel.architecture)
    return KernelImage(
        source,
        changed=kernel.kind.endswith("changed"),
        tiny=kernel.kind.startswith("tiny"),
        fragments=kernel.fragments,
        patches=kernel.patches,
        label=kernel.label,
        architecture=kernel.architecture,
        series=kernel.series,
    )


def obtain_image(
    kernel: Kernel, source: KernelSource, reporter: Reporter, logs: Path | None = None
) -> Path:
    """Return the image that guests boot, building or fetching it if the store lacks it.

    `logs` gets a copy of a build's log. Raises BuildError, HostError if the
    image cannot be fetched, and UserError if a patch does not apply.
    """
    image = kernel_of(kernel, source)
    if isinstance(image, DebianKernel):
        return image.obtain(reporter) / "Image"
    # Many kernels may have the user's changes; their recipes tell them apart.
    digest = f"-{image.entry().path.name[:8]}" if kernel.label else ""
    arch = load_architecture(kernel.architecture).suffix
    log = logs / f"build-{source.version}{arch}-{kernel.kind}{digest}.log" if logs else None
    return image.obtain(reporter, log) / "Image"


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
    if addresses(image / SYMBOLS) != addresses(debug / SYMBOLS):
        raise BuildError(
            f"{made.title} has other addresses when it is built with debug information: "
            "leave out --keep-vmlinux."
        )
    beside = image / VMLINUX
    with contextlib.suppress(FileExistsError):
        beside.hardlink_to(debug / VMLINUX)
    return beside


def addresses(symbols: Path) -> list[str]:
    """Return the lines of a System.map, without the numbers that ld gives its own symbols.

    Such a symbol is a veneer for erratum 843419, as ``e843419@02f6_000029af_f0``:
    its number counts the sections of the input, of which debug information has more.
    """
    return [re.sub(r" e843419@\w+$", " e843419", line) for line in symbols.read_text().splitlines()]
