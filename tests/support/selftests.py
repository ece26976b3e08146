# SPDX-License-Identifier: GPL-2.0
"""The guest's test programs: the features' kselftests, and the kernel's own suites."""

import shutil
from pathlib import Path

from firsttouch import processes
from firsttouch.building.apt import unpack
from firsttouch.building.host_tools import cross_compile, processors, toolchain
from firsttouch.building.overlay import EVERY, lay_over, link_tree, patches_of
from firsttouch.building.source import KernelSource
from firsttouch.building.store import Entry
from firsttouch.catalog.experiments import Packages
from firsttouch.catalog.kernels import (
    DEFAULT_ARCHITECTURE,
    load_architecture,
    load_release,
    release_names,
)
from firsttouch.files import LINUX, digest_files
from firsttouch.progress import Reporter
from firsttouch.tables import Json

# Where the features' kselftests are, in linux/ as in a kernel tree.
_SELFTESTS = Path("tools/testing/selftests")
# The kernel's own suites that meet the code the features change, and how they
# are built: not all of their Makefiles look at LDFLAGS.
_KERNEL_SUITES = ("mm", "arm64")
# khugepaged.c of 6.12 leaves out the header that defines KSFT_SKIP, and would not compile.
_GCC = "gcc -static -DKSFT_SKIP=4"
# What some of them link, from the older of the Debian releases that this runs on:
# a later C library takes archives that were made for an earlier one.
_LIBRARIES = Packages("bookworm", ("libcap-dev", "libnuma-dev", "liburing-dev"))


def suite_names() -> list[str]:
    """Return the names of the features' kselftests: FOLDER/NAME in the kernel's selftests."""
    patches = (p for name in release_names() for p in patches_of(load_release(name), EVERY))
    files = {Path(file) for patch in patches for file in patch.files}
    ours = [f.relative_to(_SELFTESTS) for f in files if f.is_relative_to(_SELFTESTS)]
    return sorted(str(file.with_suffix("")) for file in ours if file.suffix == ".c")


def build_selftests(
    source: KernelSource, reporter: Reporter, architecture: str = DEFAULT_ARCHITECTURE
) -> dict[str, Path]:
    """Return the binaries of the features' kselftests by name, built against `source`.

    They are built by the makefiles of the kernel's own selftests.
    """
    files = [path for path in (LINUX / _SELFTESTS).rglob("*") if path.is_file()]
    of_arm64 = architecture == DEFAULT_ARCHITECTURE
    names = [name for name in suite_names() if of_arm64 or not name.startswith("arm64/")]
    recipe: dict[str, Json] = {
        "names": names,
        "features' selftests": digest_files(LINUX / _SELFTESTS, files),
        "kernel": source.identity,
        "tools": toolchain(cross_compile(architecture)),
    }

    def make(workplace: Path, product: Path) -> None:
        tree, headers = workplace / "tree", _headers(source, workplace, architecture)
        shutil.rmtree(tree, ignore_errors=True)
        lay_over(source, tree, patches_of(source.release, EVERY))
        objects = workplace / "objects"
        of_mm = [objects / name for name in names if name.startswith("mm/")]
        folders = {Path(name).parts[1] for name in names if name.startswith("arm64/")}
        for suite, wanted in (
            ("arm64", [f"ARM64_SUBTARGETS={' '.join(sorted(folders))}"]),
            ("mm", of_mm),
        )[not of_arm64 :]:
            (objects / suite).mkdir(parents=True, exist_ok=True)
            processes.output(
                ["make", "-s", "-C", tree / _SELFTESTS / suite, *_make(architecture),
                 f"CC={cross_compile(architecture)}gcc -static",
                 f"OUTPUT={objects / suite}", f"KHDR_INCLUDES=-isystem {headers}", *wanted]
            )  # fmt: skip
        for name in names:
            (product / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(objects / name, product / name)

    entry = Entry("programs", recipe, f"kselftests of the features for {source.version}")
    directory = entry.obtain(make, reporter.say)
    return {name: directory / name for name in names}


def _make(architecture: str) -> list[str]:
    arch = load_architecture(architecture).arch
    return [f"ARCH={arch}", f"CROSS_COMPILE={cross_compile(architecture)}"]


def _headers(
    source: KernelSource, workplace: Path, architecture: str = DEFAULT_ARCHITECTURE
) -> Path:
    """Make the headers that `source` has for programs below `workplace`; return their folder."""
    headers = workplace / "headers"
    processes.output(
        ["make", "-s", "-C", source.tree(), f"O={headers}", *_make(architecture), "headers"]
    )  # fmt: skip
    return headers / "usr/include"


def build_kernel_suites(source: KernelSource, reporter: Reporter) -> Path:
    """Return the folder of the kernel's own mm and arm64 selftests, static for arm64.

    They lie as they do in the kernel's tools/testing/selftests: mm/NAME and
    arm64/FOLDER/NAME. Those that a release does not have, or that its compiler
    does not build, are not there.
    """
    prefix = cross_compile()
    libraries = unpack(_LIBRARIES, reporter)
    compiler = (
        f"{prefix}{_GCC} -idirafter {libraries}/usr/include -L{libraries}/usr/lib/aarch64-linux-gnu"
    )
    recipe: dict[str, Json] = {
        "kernel_suites": [_KERNEL_SUITES, _GCC],
        "libraries": libraries.name,
        "kernel": source.identity,
        "tools": toolchain(cross_compile()),
    }

    def make(workplace: Path, product: Path) -> None:
        tree = workplace / "tree"
        shutil.rmtree(tree, ignore_errors=True)
        _link_around(source.tree(), tree, Path("tools/testing/selftests"))
        reporter.say(f"Building the kernel's own selftests of {source.release.name}")
        headers = _headers(source, workplace)
        for suite in _KERNEL_SUITES:
            objects = workplace / "objects" / suite
            objects.mkdir(parents=True, exist_ok=True)
            # What does not build fails alone; who runs them names what must be there.
            with processes.child_process(
                ["make", "-k", "-s", f"-j{processors()}",
                 "-C", tree / "tools/testing/selftests" / suite,
                 "ARCH=arm64", f"CROSS_COMPILE={prefix}", f"CC={compiler}",
                 f"OUTPUT={objects}", f"KHDR_INCLUDES=-isystem {headers}"],
            ) as process:  # fmt: skip
                process.wait()
            for binary in objects.rglob("*"):
                if binary.is_file() and binary.read_bytes()[:4] == b"\x7fELF" and not binary.suffix:
                    place = product / suite / binary.relative_to(objects)
                    place.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(binary, place)

    title = f"the kernel's own selftests of {source.version}"
    return Entry("programs", recipe, title).obtain(make, reporter.say)


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
