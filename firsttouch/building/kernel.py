# SPDX-License-Identifier: GPL-2.0
"""Kernels, built once and kept under the digest of what they are built from: images and packages.

`kernel_of` says which kernel an arm boots; that of Debian is fetched.
"""

from __future__ import annotations

import contextlib
import functools
import re
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from firsttouch.building import overlay, patches
from firsttouch.building.host_tools import ccache, cross_compile, find_tool, processors, toolchain
from firsttouch.building.source import IMAGE, SYMBOLS, Configuration, DebianKernel, KernelSource
from firsttouch.building.store import Entry, check_place, locked
from firsttouch.catalog.arms import Kernel
from firsttouch.catalog.kernels import Architecture, load_architecture
from firsttouch.errors import BuildError, UserError
from firsttouch.files import LINUX, digest_file
from firsttouch.processes import child_process, output
from firsttouch.progress import Reporter
from firsttouch.quantities import format_list
from firsttouch.tables import Json

# With these, the image does not depend on the user, the host or the time.
_REPRODUCIBLE = {
    "KBUILD_BUILD_TIMESTAMP": "2026-01-01",
    "KBUILD_BUILD_USER": "firsttouch",
    "KBUILD_BUILD_HOST": "firsttouch",
    "KBUILD_BUILD_VERSION": "1",
    "LC_ALL": "C",
}
# Where a tree is built: make names each source by "../", and UBSAN writes these names into the
# image, which must not depend on where the store is.
_OBJECTS = "firsttouch-objects"
_LOG = "build.log"
# make names each object that it builds: "  CC      mm/memory.o".
_OBJECT = re.compile(r"^  [A-Z0-9]+(?: \[M\])? +\S+\.o$", re.M)
_OPTION = re.compile(r"^(?:# )?(CONFIG_\w+)(=.*| is not set)$", re.M)
_ERROR = re.compile(r"error:|Error \d|\*\*\*|undefined reference|ld: |: multiple definition")
# What bindeb-pkg calls beyond what an image needs.
_TOOLS = ("dpkg-buildpackage", "dh_builddeb", "depmod")


@dataclass(frozen=True)
class KernelImage:
    """A kernel image, or with `flavour` the package linux-image-VERSION of it.

    Its configuration starts from Debian's for the cloud, or from tinyconfig. A package is in
    Debian's configuration of `flavour`, with the modules, without headers and debug information.
    """

    source: KernelSource
    kernel: Kernel
    flavour: str = ""

    @property
    def changed(self) -> bool:
        return self.kernel.kind.endswith("changed")

    @property
    def _tiny(self) -> bool:
        return self.kernel.kind.startswith("tiny")

    @property
    def _arch(self) -> Architecture:
        return load_architecture(self.kernel.architecture)

    @property
    def title(self) -> str:
        kind = "with linux/" if self.changed else "stock"
        more = ["tiny"] * self._tiny + [self.kernel.label] * bool(self.kernel.label)
        more += [f"for {self._arch.name}"] * bool(self._arch.suffix)
        name = " ".join([self.source.version, kind, *more])
        return f"{name}, {self.flavour}" if self.flavour else name

    @property
    def target(self) -> tuple[str, ...]:
        if not self.flavour:
            return (self._arch.target,)
        # What uname -r prints after the version.
        suffix = f"-{'first-touch' if self.changed else 'stock'}-{self.flavour}"
        return (
            "bindeb-pkg",
            f"LOCALVERSION={suffix}",
            # Debian's list of build dependencies includes those of other packages.
            "DPKG_FLAGS=--no-check-builddeps --build-profiles=pkg.linux-upstream.nokernelheaders",
        )

    def fragments_in_order(self) -> list[Path]:
        """Return the configuration fragments; an option in a later one wins."""
        configs = LINUX / "configs"
        if self.flavour:
            names = ["package", *["package-features"] * self.changed]
            return [*(configs / name for name in names), *self.kernel.fragments]
        base = "tiny" if self._tiny else "lab"
        names = [f"{base}-{self.source.release.name}"]
        for name in self._arch.features if self.changed else ():
            names += [f"features/{name}"] * (self.kernel.series in ("", overlay.EVERY, name))
        optional = [file for name in names if (file := configs / name).exists()]
        return [*self._arch.fragments(base), *optional, *self.kernel.fragments]

    def entry(self) -> Entry:
        """Return the store's entry; its recipe is source, linux/, configuration and tools."""
        release, series = self.source.release, self.kernel.series
        base = [] if self._tiny else [self.source.configuration(self._arch.name, self.flavour)]
        recipe: dict[str, Json] = {
            "source": self.source.identity,
            "overlay": overlay.overlay_identity(release, series) if self.changed else None,
            "config": [digest_file(file) for file in (*base, *self.fragments_in_order())],
            "patches": [digest_file(file) for file in self.kernel.patches],
            "tools": toolchain(cross_compile(self._arch.name)),
            "environment": _REPRODUCIBLE,
            "objects": _OBJECTS,
        }
        if self.flavour:
            recipe["target"] = list(self.target)
            return Entry("images", recipe, f"package of kernel {self.title}")
        return Entry("images", recipe, f"kernel {self.title}", IMAGE)

    def stored(self) -> Path | None:
        if not self._tiny and not Configuration(self.source.release, self._arch.name).stored():
            return None
        return self.entry().use()

    def obtain(self, reporter: Reporter) -> Path:
        """Return the image, beside ``System.map``, ``config`` and ``build.log``, or the package.

        Raises BuildError with the compiler's errors, HostError if a tool is missing, and UserError
        if a patch does not apply.
        """
        build, follow = (functools.partial(f, reporter) for f in (self._build, self._follow))
        made = self.entry().obtain(build, reporter.say, follow)
        return next(made.glob("*.deb")) if self.flavour else made

    def _follow(self, reporter: Reporter, making: Path) -> None:
        """Report how far another run is that builds this kernel, until it ends."""
        title, objects = f"Waiting for {self.title}", self.source.release.objects
        with reporter.step(title, "objects", objects) as step, contextlib.suppress(OSError):
            step.began -= time.time() - making.stat().st_mtime
            free = False
            while not free:
                time.sleep(1)
                log = making / _LOG
                step.at(len(_OBJECT.findall(log.read_text())) if log.exists() else 0)
                with locked(making.with_suffix(".lock")) as free:
                    pass

    def _build(self, reporter: Reporter, workplace: Path, product: Path) -> None:
        check_place()
        for tool in _TOOLS if self.flavour else ():
            find_tool(tool)
        tree = workplace / "tree"
        objects = tree / _OBJECTS
        ours = overlay.patches_of(self.source.release, self.kernel.series) if self.changed else []
        overlay.lay_over(self.source, tree, ours)
        patches.apply_patches(self.kernel.patches, self.source.version, tree)
        self.configure(tree, objects)
        self._compile(tree, objects, workplace / _LOG, reporter)
        if not self.flavour:
            shutil.copyfile(objects / self._arch.image, product / IMAGE)
        shutil.copyfile(objects / ".config", product / "config")
        # dpkg-buildpackage writes packages next to the directory that it builds in.
        packages = tree.glob("linux-image-*.deb")
        for file in (*(packages if self.flavour else [objects / SYMBOLS]), workplace / _LOG):
            shutil.copy(file, product)

    def configure(self, tree: Path, objects: Path) -> None:
        """Write `objects`/.config: Debian's configuration, or tinyconfig, with the fragments."""
        objects.mkdir(parents=True)
        if self._tiny:
            output(self._command(tree, objects, "tinyconfig"), env=_REPRODUCIBLE)
        else:
            base = self.source.configuration(self._arch.name, self.flavour)
            shutil.copyfile(base, objects / ".config")
        wanted = "".join(fragment.read_text() for fragment in self.fragments_in_order())
        with (objects / ".config").open("a") as config:
            config.write(wanted)
        output(self._command(tree, objects, "olddefconfig"), env=_REPRODUCIBLE)
        got = dict(_OPTION.findall((objects / ".config").read_text()))
        # The last line for an option wins, as in Kconfig; one without a line is not set.
        asked = dict(_OPTION.findall(wanted)).items()
        if missed := [name for name, value in asked if got.get(name, " is not set") != value]:
            raise UserError(
                f"kernel {self.title} did not accept options of its configuration, because it "
                f"lacks them or others exclude them: remove {', '.join(missed)} or add what "
                "they depend on."
            )

    def _compile(self, tree: Path, objects: Path, log: Path, reporter: Reporter) -> None:
        title = f"Building {self.title}"
        command = self._command(tree, objects, *self.target)
        with (
            reporter.step(title, "objects", self.source.release.objects) as step,
            log.open("w", buffering=1) as sink,
            child_process(command, env=_REPRODUCIBLE, stdout=subprocess.PIPE) as make,
        ):
            assert make.stdout is not None
            for line in make.stdout:
                sink.write(line)
                if _OBJECT.match(line):
                    step.advance()
        if make.returncode:
            errors = [line for line in log.read_text().splitlines() if _ERROR.search(line)]
            raise BuildError(
                f"{title} failed: fix the error below; the whole log is {log}.", errors[-20:]
            )

    def _command(self, tree: Path, objects: Path, *target: str) -> list[str]:
        prefix = cross_compile(self._arch.name)
        return [
            "make",
            # One more than there are CPUs: make itself waits, and links on one.
            f"-j{processors() + 1}",
            f"-C{tree}",
            f"O={objects}",
            f"ARCH={self._arch.arch}",
            f"CROSS_COMPILE={prefix}",
            *ccache(tree, objects, prefix),
            *target,
            # Otherwise the revision of a package grows with each run of make.
            *([f"KDEB_PKGVERSION={self.source.version}-1"] if self.flavour else []),
        ]


def kernel_of(kernel: Kernel, source: KernelSource) -> KernelImage | DebianKernel:
    """Return how arms get that `kernel`, for the release of `source`."""
    architecture = load_architecture(kernel.architecture)
    kinds = architecture.kernels
    series = ("", overlay.EVERY, *architecture.features)
    if kernel.kind not in kinds or kernel.series not in series:
        name = f"{kernel.kind} {kernel.series}".rstrip()
        raise UserError(
            f"{name} kernels are not for {kernel.architecture}: give arms that boot "
            f"{format_list(kinds, 9)} ones, or a series of {format_list(architecture.features, 9)}."
        )
    if kernel.kind == "debian":
        return DebianKernel(source.release, source.version, kernel.architecture)
    return KernelImage(source, kernel)
