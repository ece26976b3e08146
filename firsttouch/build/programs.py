# SPDX-License-Identifier: GPL-2.0
"""Programs of this project: ftbench, the recorder, the guest's init, the PMU's plugin.

The store keeps them under the digest of their sources and of the tools.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from firsttouch import processes
from firsttouch.build.host_tools import (
    clang_version,
    cross_compile,
    qemu_version,
    toolchain_identity,
)
from firsttouch.build.store import Entry
from firsttouch.catalog.experiments import KINDS
from firsttouch.errors import BuildError, HostError
from firsttouch.files import digest_files
from firsttouch.places import REPOSITORY
from firsttouch.progress import Reporter
from firsttouch.tables import Json

# The plugin is built for one version of QEMU.
_PMU = "pmu"
# Arguments for make. No -g: debug information names the folder of the build.
_ARGUMENTS = {
    ("libftpmu.so", "native"): ("CFLAGS=-O2",),
    (KINDS, "arm64"): (KINDS,),
    # This one only lists what it can measure, for which it needs no clang.
    (KINDS, "native"): (KINDS, "BUILDS="),
}
# Orders of ftbench's objects, and by how many objects each begins after the one before.
ORDERS, _APART = 4, 8
_SOURCES = {".c", ".h", ".S", ".ld", ".sh", ""}


def build_ftbench(reporter: Reporter, *, native: bool = False, order: int = 0) -> Path:
    """Return ftbench, static, for arm64; `native`: for this host.

    `order` is that of its objects, less than `ORDERS`. Raises BuildError with
    the compiler's errors if it does not build.
    """
    return _build("bench", "ftbench", reporter, native=native, order=order)


def build_kinds(reporter: Reporter, *, native: bool = False, order: int = 0) -> Path:
    """Return ftbench with update-kinds, static, for arm64; `native`: for this host, to list it.

    `order` is as of `build_ftbench`.

    For arm64 it raises HostError if clang, the second compiler of update-kinds,
    is missing. Raises BuildError with the compiler's errors if it does not build.
    """
    return _build("bench", KINDS, reporter, native=native, order=order)


def build_init(reporter: Reporter) -> Path:
    """Return the guest's init; BuildError with the compiler's errors if it does not build."""
    return _build("guest", "init", reporter)


def build_pmu(reporter: Reporter) -> Path:
    """Return the PMU's plugin, built for the QEMU that is installed.

    Raises BuildError with the compiler's errors if it does not build.
    """
    return _build(_PMU, "libftpmu.so", reporter, native=True)


def build_recorder(reporter: Reporter, *, native: bool = True) -> Path:
    """Return the recorder of page faults, static, for this host; not `native`: for arm64.

    Raises BuildError with the compiler's errors if it does not build.
    """
    return _build("recorder", "ftrecord", reporter, native=native)


def stored_scripts(scripts: Mapping[str, str]) -> dict[str, Path] | None:
    """Return the file of each of `scripts`, by name, if the store has them."""
    kept = _scripts(scripts).use()
    return {name: kept / name for name in scripts} if kept else None


def keep_scripts(scripts: Mapping[str, str], reporter: Reporter) -> dict[str, Path]:
    """Return a file for each of `scripts`, by name."""

    def make(_: Path, kept: Path) -> None:
        for name, script in scripts.items():
            (kept / name).write_text(script)

    kept = _scripts(scripts).obtain(make, reporter.say)
    return {name: kept / name for name in scripts}


def _scripts(scripts: Mapping[str, str]) -> Entry:
    return Entry("programs", {"scripts": dict(scripts)}, "scripts")


def stored_program(name: str, product: str, *, native: bool = False, order: int = 0) -> Path | None:
    """Return `product` of folder `name`, for arm64 or for this host, if the store has it.

    Without its compiler, nothing tells which build of it this host would make.
    """
    try:
        kept = _entry(name, product, native=native, order=order).use()
    except HostError:
        return None
    return kept / product if kept else None


def ftbench_list(reporter: Reporter) -> str:
    """Return the output of ``ftbench --list=json`` on this host: all that it can measure."""
    return processes.output([build_kinds(reporter, native=True), "--list=json"])


def _build(
    name: str, product: str, reporter: Reporter, *, native: bool = False, order: int = 0
) -> Path:
    """Return `product`, which the Makefile of folder `name` makes, for arm64 or for this host."""

    def make(workplace: Path, kept: Path) -> None:
        prefix = "" if native else cross_compile()
        words = _arguments(product, native=native, order=order)
        made = run_make(REPOSITORY / name, workplace, prefix, *words)
        shutil.copy(made / product, kept / product)

    return _entry(name, product, native=native, order=order).obtain(make, reporter.say) / product


def _entry(name: str, product: str, *, native: bool, order: int = 0) -> Entry:
    """Return the store's entry of `product`, which the Makefile of folder `name` makes."""
    folder = REPOSITORY / name
    recipe: dict[str, Json] = {
        "sources": digest_files(folder, _sources(folder)),
        "tools": toolchain_identity(native=native),
        "variables": list(_arguments(product, native=native, order=order)),
    }
    if name == _PMU:
        recipe["qemu"] = qemu_version()
    if product == KINDS and not native:
        recipe["clang"] = clang_version()
    return Entry("programs", recipe, f"{product} for {'this host' if native else 'arm64'}")


def _arguments(product: str, *, native: bool, order: int) -> tuple[str, ...]:
    words = _ARGUMENTS.get((product, "native" if native else "arm64"), ())
    return (*words, f"FIRST={1 + order * _APART}") if order else words


def _sources(folder: Path) -> Iterable[Path]:
    return (path for path in folder.rglob("*") if path.is_file() and path.suffix in _SOURCES)


def run_make(folder: Path, workplace: Path, prefix: str, *variables: str) -> Path:
    """Run make for `folder` with the tools of `prefix`; return the folder of its products.

    make runs in a copy and gets only relative paths: a path must have no blank
    for make, and the products must not depend on where they are made.
    """
    objects, copy = workplace / "objects", workplace / "source"
    for place in (objects, copy):
        shutil.rmtree(place, ignore_errors=True)
    objects.mkdir()
    _copy(folder, copy)
    try:
        processes.output(
            ["make", "-s", f"CROSS_COMPILE={prefix}", "OUTPUT=../objects", *variables],
            cwd=copy,
            env={"LC_ALL": "C"},
        )
    except HostError as error:
        raise BuildError(
            f"{folder.name} failed to build; compiler errors below.", error.detail
        ) from None
    return objects


def _copy(folder: Path, copy: Path) -> None:
    """Copy a folder of sources, which may be read-only, into writable directories."""
    copy.mkdir()
    for path in sorted(folder.rglob("*")):
        if path.is_dir():
            (copy / path.relative_to(folder)).mkdir()
        else:
            shutil.copy(path, copy / path.relative_to(folder), follow_symlinks=False)
