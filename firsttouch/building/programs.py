# SPDX-License-Identifier: GPL-2.0
"""Programs of this project: ftbench, the recorder, the guest's init, the PMU's plugin.

The store keeps them under the digest of their sources and of the tools.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path

from firsttouch import processes
from firsttouch.building.host_tools import cross_compile, qemu_version, toolchain_identity
from firsttouch.building.store import Entry
from firsttouch.catalog.architectures import DEFAULT_ARCHITECTURE
from firsttouch.errors import BuildError, HostError
from firsttouch.files import digest_files
from firsttouch.places import REPOSITORY
from firsttouch.progress import Reporter
from firsttouch.tables import Json

# Orders of ftbench's objects, and by how many objects each begins after the one before.
ORDERS, _APART = 4, 8
_SOURCES = {".c", ".h", ".S", ".ld", ".sh", ""}


@dataclass(frozen=True)
class Program:
    """A program of this project: `product` of the Makefile of `folder`, for `architecture`.

    `native`: for this host. `order` is that of ftbench's objects, less than `ORDERS`.
    """

    folder: str
    product: str
    native: bool = False
    order: int = 0
    architecture: str = DEFAULT_ARCHITECTURE

    @property
    def title(self) -> str:
        return f"{self.product}, order {self.order}" if self.order else self.product

    @property
    def _variables(self) -> list[str]:
        # No -g: debug information names the folder of the build.
        words = ["CFLAGS=-O2"] if self == PMU else []
        return [*words, f"FIRST={1 + self.order * _APART}"] if self.order else words

    def _entry(self) -> Entry:
        folder = REPOSITORY / self.folder
        files = (file for file in folder.rglob("*") if file.suffix in _SOURCES and file.is_file())
        recipe: dict[str, Json] = {
            "sources": digest_files(folder, files),
            "tools": toolchain_identity(self.architecture, native=self.native),
            "variables": self._variables,
        }
        if self == PMU:
            # The plugin is built for one version of QEMU.
            recipe["qemu"] = qemu_version()
        where = "this host" if self.native else self.architecture
        return Entry("programs", recipe, f"{self.product} for {where}")

    def stored(self) -> Path | None:
        """Return the program if the store has it.

        Without its compiler, nothing tells which build of it this host would make.
        """
        try:
            entry = self._entry().use()
        except HostError:
            return None
        return entry / self.product if entry else None

    def obtain(self, reporter: Reporter) -> Path:
        """Return the program. Raises BuildError with the compiler's errors if it does not build."""
        return self._entry().obtain(self._build, reporter.say) / self.product

    def _build(self, workplace: Path, product: Path) -> None:
        """Run make in a copy, with relative paths only.

        A path must have no blank for make, and the products must not depend on where they are
        made.
        """
        folder, copy, objects = (
            REPOSITORY / self.folder,
            workplace / "source",
            workplace / "objects",
        )
        objects.mkdir()
        # The folder may be read-only; the copy's folders must not be.
        for path in (folder, *sorted(folder.rglob("*"))):
            if path.is_dir():
                (copy / path.relative_to(folder)).mkdir()
            else:
                shutil.copy(path, copy / path.relative_to(folder), follow_symlinks=False)
        prefix = "" if self.native else cross_compile(self.architecture)
        try:
            processes.output(
                ["make", "-s", f"CROSS_COMPILE={prefix}", "OUTPUT=../objects", *self._variables],
                cwd=copy, env={"LC_ALL": "C"},
            )  # fmt: skip
        except HostError as error:
            raise BuildError(
                f"{folder.name} failed to build; compiler errors below.", error.detail
            ) from None
        shutil.copy(objects / self.product, product)


INIT = Program("guest", "init")
PMU = Program("pmu", "libftpmu.so", native=True)
RECORDER = Program("recorder", "ftrecord")


def init_of(architecture: str) -> Program:
    """Return the init of guests of an architecture."""
    return replace(INIT, architecture=architecture)


def ftbench(
    order: int = 0, *, native: bool = False, architecture: str = DEFAULT_ARCHITECTURE
) -> Program:
    """Return ftbench, static, its objects linked in one of `ORDERS` orders."""
    return Program("bench", "ftbench", native, order, architecture)


@dataclass(frozen=True)
class Scripts:
    """Scripts by name, a file each."""

    texts: tuple[tuple[str, str], ...]
    title: str = field(default="scripts", init=False)

    def stored(self) -> Path | None:
        return self._entry().use()

    def obtain(self, reporter: Reporter) -> Path:
        """Return the folder with the scripts."""
        return self._entry().obtain(self._write, reporter.say)

    def _write(self, _: Path, product: Path) -> None:
        for name, text in self.texts:
            (product / name).write_text(text)

    def _entry(self) -> Entry:
        return Entry("programs", {"scripts": dict(self.texts)}, self.title)


def build_ftbench(reporter: Reporter, *, native: bool = False) -> Path:
    """Return ftbench for arm64, or for this host."""
    return ftbench(native=native).obtain(reporter)


def build_recorder(reporter: Reporter, *, native: bool = True) -> Path:
    """Return the recorder of page faults, static, for this host; not `native`: for arm64."""
    return replace(RECORDER, native=native).obtain(reporter)


def ftbench_list(reporter: Reporter) -> str:
    """Return the output of ``ftbench --list=json`` on this host: all that it can measure."""
    return processes.output([build_ftbench(reporter, native=True), "--list=json"])
