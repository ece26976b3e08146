# SPDX-License-Identifier: GPL-2.0
"""Fixtures of the kernel code's tests: the decoder on the build host, an assembler, guests."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from firsttouch.building.apt import unpack
from firsttouch.building.host_tools import cross_compile
from firsttouch.building.programs import INIT
from firsttouch.building.source import KernelSource
from firsttouch.catalog.arms import load_arm
from firsttouch.catalog.experiments import Packages
from firsttouch.catalog.kernels import load_release, release_names
from firsttouch.catalog.machines import load_machine
from firsttouch.files import LINUX
from firsttouch.progress import Reporter
from firsttouch.vm.guest import Guest
from tests.linux.outcomes import Outcomes
from tests.support.kernels import with_variant

HERE = Path(__file__).parent

Assemble = Callable[[Sequence[str]], bytes]


@pytest.fixture(scope="session")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The decoder, compiled for this host."""
    folder = tmp_path_factory.mktemp("decoder")
    (folder / "intent.h").write_text(_decoder())
    program = folder / "decoder"
    flags = ("-O2", "-Wall", "-Wextra", "-Werror", f"-I{folder}")
    subprocess.run(["cc", *flags, "-o", program, HERE / "decoder.c"], check=True)
    return program


# What the decoder needs of the kernel's headers.
_KERNEL = """\
typedef uint32_t u32;
#define BIT(n) (1U << (n))
#define __AARCH64_INSN_FUNCS(name, mask, val) \\
static inline bool aarch64_insn_is_##name(u32 insn) { return (insn & (mask)) == (val); }
"""


def _decoder() -> str:
    """Return the decoder and all that it uses, from the files of which a kernel gets them."""
    code = (LINUX / "arch/arm64/mm/write_intent.c").read_text()
    (hook,) = {
        (load_release(name).hooks / "write-intent-insns.patch").read_text().partition("@@\n")[2]
        for name in release_names()
    }
    decode = re.search(r"^static bool aarch64_insn_writes_what_it_reads.*?^\}", code, re.M | re.S)
    assert decode
    classes = re.findall(r"^[+ ](__AARCH64_INSN_FUNCS\((?:atomic|cas).*)", hook, re.M)
    return "\n".join([_KERNEL, *classes, decode[0], ""])


def compiled(source: Path, folder: Path, prefix: str = "") -> Path:
    """Return a static program for guests, by the compiler of arm64 or of `prefix`."""
    program = folder / source.stem
    flags = ("-static", "-O2", "-Wall", "-Wextra", "-Werror", "-o", program)
    subprocess.run([f"{prefix or cross_compile()}gcc", *flags, source], check=True)
    return program


LLVM = Path("/usr/lib/llvm-22/bin")


@pytest.fixture(scope="session")
def assemble(tmp_path_factory: pytest.TempPathFactory) -> Assemble:
    """The words of some instructions, by the assembler of a recent LLVM."""
    directory = tmp_path_factory.mktemp("assembler")

    def run(lines: Sequence[str]) -> bytes:
        source, objct, text = (directory / f"text.{end}" for end in ("s", "o", "bin"))
        source.write_text("\n".join(lines) + "\n")
        target = ("-triple=aarch64-linux-gnu", "-mattr=+all", "-filetype=obj")
        subprocess.run([LLVM / "llvm-mc", *target, "-o", objct, source], check=True)
        section = ("-O", "binary", "-j", ".text")
        subprocess.run([LLVM / "llvm-objcopy", *section, objct, text], check=True)
        return text.read_bytes()

    return run


@pytest.fixture
def outcomes(request: pytest.FixtureRequest, tmp_path: Path) -> Outcomes:
    return Outcomes(tmp_path, lasting=request.node.get_closest_marker("regress") is not None)


MakeGuest = Callable[..., Guest]


@pytest.fixture(scope="session")
def make_guest(sources: Callable[[str], KernelSource], reporter: Reporter) -> MakeGuest:
    """A guest of the lab, for tests to add commands to."""

    def make(release: str, variant: str | None, *boot: str, arm: str = "on") -> Guest:
        source, booted = sources(release), load_arm(arm)
        machine = load_machine("neoverse-n1")
        changed = booted.kernel.kind == "changed"
        kernel = with_variant(source, changed, variant, booted.kernel.series)
        words = [*machine.boot_words(booted.boot), *boot]
        if variant == "no-color":
            # A kernel without the feature does not know its word, and the guest is refused.
            words = [word for word in words if not word.startswith("zero_page_colors=")]
        image, init = kernel.obtain(reporter), INIT.obtain(reporter)
        return Guest(image, init, machine, tuple(words), ())

    return make


AddScript = Callable[[Guest, str], Guest]


@pytest.fixture(scope="session")
def add_script(reporter: Reporter, tmp_path_factory: pytest.TempPathFactory) -> AddScript:
    """Adds a shell script to a guest's commands; the shell, Debian's busybox, stays in /bin."""

    def add(guest: Guest, text: str) -> Guest:
        busybox = unpack(Packages("trixie", ("busybox-static",)), reporter) / "usr/bin/busybox"
        script = tmp_path_factory.mktemp("script") / "script"
        script.write_text(f"/bin/busybox --install -s /bin\n{text}")
        return replace(
            guest,
            commands=(*guest.commands, "/bin/busybox sh /script"),
            files={**guest.files, "/bin/busybox": busybox, "/script": script},
        )

    return add
