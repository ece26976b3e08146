# SPDX-License-Identifier: GPL-2.0
"""The guest's programs, built static for arm64 and kept by the hash of their sources."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from firsttouch import processes
from firsttouch.build.store import Entry, digest, digest_files
from firsttouch.build.packages import unpack
from firsttouch.errors import KernelBuildError, MachineError
from firsttouch.vm.guest import qemu_version
from firsttouch.build.overlay import link_tree
from firsttouch.progress import Reporter
from firsttouch.build.sources import LINUX, REPOSITORY, KernelSource
from firsttouch.build.compiler import compiler_identity, cross_compile

# Where the features' kselftests are, in linux/ as in a kernel tree.
SELFTESTS = "tools/testing/selftests/first_touch"
# The kernel's own suites that meet the code the features change, and how they
# are built: not all of their Makefiles look at LDFLAGS.
_KERNEL_SUITES = ("mm", "arm64")
# khugepaged.c of 6.12 leaves out the header that defines KSFT_SKIP, and would not compile.
_GCC = "gcc -static -DKSFT_SKIP=4"
# What some of them link, from the older of the Debian releases that this runs on:
# a later C library takes archives that were made for an earlier one.
_LIBRARIES = ("bookworm", ("libcap-dev", "libnuma-dev", "liburing-dev"))
_SOURCES = {".c", ".h", ".S", ""}


def build_program(name: str, reporter: Reporter, *, native: bool = False) -> Path:
    """Return the arm64 binary that the Makefile of folder `name` makes.

    `name` is ``bench`` (ftbench) or ``guest`` (init); `native` asks for the
    binary that runs on this very machine instead. Raises
    KernelBuildError with the compiler's errors if it does not build.
    """
    folder = REPOSITORY / name
    sources = [path for path in folder.rglob("*") if path.is_file() and path.suffix in _SOURCES]
    entry = Entry(
        "programs",
        digest(
            {
                "sources": digest_files(folder, sources),
                "compiler": compiler_identity(native=native),
            }
        ),
    )
    binary = {"bench": "ftbench", "guest": "init"}[name]

    def make(workplace: Path, kept: Path) -> None:
        prefix = "" if native else cross_compile()
        shutil.copy(_make(folder, workplace, prefix) / binary, kept / binary)

    return entry.obtain(make, reporter.say) / binary


def build_pmu(reporter: Reporter) -> Path:
    """Return the PMU's plugin, built for the QEMU that is installed.

    Raises KernelBuildError with the compiler's errors if it does not build.
    """
    folder = REPOSITORY / "pmu"
    sources = [*folder.glob("*.[ch]"), folder / "Makefile", folder / "api.sh"]
    entry = Entry(
        "programs",
        digest(
            {
                "sources": digest_files(folder, sources),
                "compiler": compiler_identity(native=True),
                "qemu": qemu_version(),
            }
        ),
    )

    def make(workplace: Path, kept: Path) -> None:
        shutil.copy(_make(folder, workplace, "") / "libftpmu.so", kept / "libftpmu.so")

    return entry.obtain(make, reporter.say) / "libftpmu.so"


def build_selftests(source: KernelSource, reporter: Reporter) -> list[Path]:
    """Return the arm64 binaries of the features' kselftests, built against `source`.

    Raises KernelBuildError with the compiler's errors if they do not build.
    """
    folder = LINUX / SELFTESTS
    entry = Entry(
        "programs",
        digest(
            {
                "sources": digest_files(folder, [p for p in folder.rglob("*") if p.is_file()]),
                "kernel": source.identity,
                "compiler": compiler_identity(),
            }
        ),
    )

    def make(workplace: Path, kept: Path) -> None:
        objects = _make(folder, workplace, cross_compile(), f"KSRC={source.tree()}")
        for binary in objects.iterdir():
            shutil.copy(binary, kept / binary.name)

    directory = entry.obtain(make, reporter.say)
    return sorted(path for path in directory.iterdir() if path.suffix != ".json")


def build_kernel_suites(source: KernelSource, reporter: Reporter) -> Path:
    """Return the folder of the kernel's own mm and arm64 selftests, static for arm64.

    They lie as they do in the kernel's tools/testing/selftests: mm/NAME and
    arm64/FOLDER/NAME. Those that a release does not have, or that its compiler
    does not build, are not there. Raises KernelBuildError if the kernel's
    headers cannot be made.
    """
    prefix = cross_compile()
    libraries = unpack(*_LIBRARIES, reporter)
    compiler = (
        f"{prefix}{_GCC} -idirafter {libraries}/usr/include -L{libraries}/usr/lib/aarch64-linux-gnu"
    )
    entry = Entry(
        "programs",
        digest(
            {
                "kernel_suites": [_KERNEL_SUITES, _GCC],
                "libraries": libraries.name,
                "kernel": source.identity,
                "compiler": compiler_identity(),
            }
        ),
    )

    def make(workplace: Path, kept: Path) -> None:
        tree, headers = workplace / "tree", workplace / "headers"
        shutil.rmtree(tree, ignore_errors=True)
        _link_around(source.tree(), tree, Path("tools/testing/selftests"))
        reporter.say(f"Building the kernel's own selftests of {source.release.name}")
        try:
            processes.output(
                ["make", "-s", "-C", source.tree(), f"O={headers}", "ARCH=arm64",
                 f"CROSS_COMPILE={prefix}", "headers"]
            )  # fmt: skip
        except MachineError as error:
            raise KernelBuildError(
                "the kernel's headers do not build: mend them.", error.detail
            ) from None
        for suite in _KERNEL_SUITES:
            objects = workplace / "objects" / suite
            objects.mkdir(parents=True, exist_ok=True)
            # What does not build fails alone; who runs them names what must be there.
            with processes.kept(
                ["make", "-k", "-s", f"-j{os.cpu_count() or 1}",
                 "-C", tree / "tools/testing/selftests" / suite,
                 "ARCH=arm64", f"CROSS_COMPILE={prefix}", f"CC={compiler}",
                 f"OUTPUT={objects}", f"KHDR_INCLUDES=-isystem {headers}/usr/include"],
            ) as process:  # fmt: skip
                process.wait()
            for binary in objects.rglob("*"):
                if binary.is_file() and binary.read_bytes()[:4] == b"\x7fELF" and not binary.suffix:
                    place = kept / suite / binary.relative_to(objects)
                    place.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(binary, place)

    return entry.obtain(make, reporter.say)


def _link_around(tree: Path, destination: Path, folder: Path) -> None:
    """Make at `destination` a tree in which `folder` can be written into; the rest is linked to.

    Makefiles of selftests leave what they find out about the compiler beside their sources.
    """
    here = Path()
    for part in folder.parts:
        (destination / here).mkdir(parents=True)
        for path in (tree / here).iterdir():
            if path.name != part:
                (destination / here / path.name).symlink_to(path)
        here /= part
    link_tree(tree / folder, destination / folder)


def _make(folder: Path, workplace: Path, prefix: str, *variables: str) -> Path:
    """Run make in `folder` with the tools of `prefix`; return the folder of what it made."""
    objects = workplace / "objects"
    shutil.rmtree(objects, ignore_errors=True)
    objects.mkdir()
    try:
        processes.output(
            ["make", "-s", "-C", folder, f"CROSS_COMPILE={prefix}", f"OUTPUT={objects}", *variables]
        )
    except MachineError as error:
        name = folder.relative_to(REPOSITORY)
        raise KernelBuildError(f"{name} does not build: mend it.", error.detail) from None
    return objects
