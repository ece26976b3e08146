# SPDX-License-Identifier: GPL-2.0
"""Write intent that is learned on other architectures: it builds on riscv, and runs on x86-64."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from firsttouch.build.host_tools import processors
from firsttouch.build.overlay import apply, patches_of
from firsttouch.build.patching import link_tree
from firsttouch.build.sources import KernelSource
from firsttouch.catalog.releases import release_names
from firsttouch.places import LINUX
from firsttouch.vm import initramfs
from tests.support.ktap import parse

pytestmark = pytest.mark.regress

Sources = Callable[[str], KernelSource]

_SERIES = "write-intent-learn"
_TEST = "tools/testing/selftests/mm/write_intent_learn.c"
_INIT = Path(__file__).with_name("first.c")
# Seconds that a boot without KVM may take, many times what it takes.
_LONGEST = 600

# Laid over tinyconfig: what the feature and its tests need.
_OPTIONS = """\
CONFIG_64BIT=y
CONFIG_MMU=y
CONFIG_SMP=y
CONFIG_EXPERT=y
CONFIG_JUMP_LABEL=y
CONFIG_PRINTK=y
CONFIG_TTY=y
CONFIG_SERIAL_8250=y
CONFIG_SERIAL_8250_CONSOLE=y
CONFIG_BINFMT_ELF=y
CONFIG_BLK_DEV_INITRD=y
CONFIG_FUTEX=y
CONFIG_POSIX_TIMERS=y
CONFIG_SHMEM=y
CONFIG_PROC_FS=y
CONFIG_SYSCTL=y
CONFIG_SYSFS=y
CONFIG_VM_EVENT_COUNTERS=y
CONFIG_TRANSPARENT_HUGEPAGE=y
CONFIG_TRANSPARENT_HUGEPAGE_MADVISE=y
CONFIG_USERFAULTFD=y
CONFIG_ADVISE_SYSCALLS=y
CONFIG_KUNIT=y
CONFIG_WRITE_INTENT_LEARN=y
CONFIG_WRITE_INTENT_LEARN_KUNIT_TEST=y
"""


@dataclass(frozen=True)
class Tree:
    """A kernel source with the series, and where an architecture's objects go."""

    tree: Path
    objects: Path
    arch: str
    cross_compile: str

    def make(self, *words: str) -> str:
        return _run(
            "make", "-s", f"-j{processors()}", "-C", self.tree, f"O={self.objects}",
            f"ARCH={self.arch}", f"CROSS_COMPILE={self.cross_compile}", *words,
        )  # fmt: skip

    def configure(self) -> None:
        self.objects.mkdir()
        self.make("tinyconfig")
        with (self.objects / ".config").open("a") as config:
            config.write(_OPTIONS)
        self.make("olddefconfig")
        configured = (self.objects / ".config").read_text().splitlines()
        missing = [option for option in _OPTIONS.splitlines() if option not in configured]
        assert missing == []


def _run(*command: str | Path, seconds: int | None = None) -> str:
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, check=False, timeout=seconds
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout + done.stderr


def _with_series(source: KernelSource, folder: Path, arch: str, cross_compile: str) -> Tree:
    tree = Tree(folder / "linux", folder / "objects", arch, cross_compile)
    link_tree(source.tree(), tree.tree)
    for patch in patches_of(source.release, _SERIES):
        apply(patch, source.release, tree.tree)
    tree.configure()
    return tree


@pytest.mark.parametrize("release", release_names())
def test_riscv_builds_without_warnings(sources: Sources, tmp_path: Path, release: str) -> None:
    tree = _with_series(sources(release), tmp_path, "riscv", "riscv64-linux-gnu-")
    objects = [str(file.relative_to(LINUX).with_suffix(".o")) for file in LINUX.glob("mm/*.c")]
    said = tree.make("W=1", *objects, "mm/memory.o", "mm/huge_memory.o", "kernel/fork.o")
    assert "write_intent" not in said
    shutil.rmtree(tree.objects)


@pytest.mark.parametrize("release", release_names())
def test_x86_64_passes_the_tests(sources: Sources, tmp_path: Path, release: str) -> None:
    tree = _with_series(sources(release), tmp_path, "x86_64", "x86_64-linux-gnu-")
    said = tree.make("bzImage")
    assert "write_intent" not in said
    cases = parse(_booted(tree, tmp_path))
    shutil.rmtree(tree.objects)
    assert not [case for case in cases if case.outcome != "passed"]
    of_kernel = [case for case in cases if case.name.startswith("write_intent_learn/")]
    assert of_kernel, "the KUnit tests did not run"
    assert len(cases) - len(of_kernel) >= 10


def _booted(tree: Tree, folder: Path) -> list[str]:
    """Return what the console says until the tests have ended."""
    init, test, archive = folder / "init", folder / "test", folder / "initrd"
    compiler = f"{tree.cross_compile}gcc"
    _run(compiler, "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-o", init, _INIT)
    tree.make("headers")
    _run(
        compiler, "-O2", "-static", "-pthread", "-isystem", tree.objects / "usr/include",
        "-o", test, tree.tree / _TEST,
    )  # fmt: skip
    files = {"/init": init.read_bytes(), "/test": test.read_bytes()}
    archive.write_bytes(initramfs.console_archive() + initramfs.archive(files))
    said = _run(
        "qemu-system-x86_64", "-nodefaults", "-display", "none", "-no-reboot", "-serial", "stdio",
        "-smp", "4", "-m", "1G", "-cpu", "max", "-kernel", tree.objects / "arch/x86/boot/bzImage",
        "-initrd", archive, "-append", "console=ttyS0 panic=-1", seconds=_LONGEST,
    )  # fmt: skip
    assert "the test ended with status 0" in said, said[-3000:]
    return said.splitlines()
