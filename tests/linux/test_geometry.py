# SPDX-License-Identifier: GPL-2.0
"""Zero pages and the firmware's word on the caches: guests booted by device tree and by PPTT."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firsttouch.vm import initramfs as cpio
from firsttouch.vm.guest import FIRMWARE, Guest
from firsttouch.catalog.machines import Cache, Machine, load_machine, machine_names
from tests.support.pptt import as_archive
from firsttouch.processes import output
from firsttouch.build.programs import build_program
from firsttouch.progress import Reporter
from firsttouch.build.sources import releases
from tests.linux.cache_tables import BAD_TABLES, GOOD_TABLES, L2, Table
from tests.linux.cache_trees import BAD_TREES, GOOD_TREES, Tree

pytestmark = pytest.mark.kernel

Images = Callable[[str, bool], Path]

_QEMU = ("qemu-system-aarch64", "-nodefaults", "-no-user-config", "-display", "none",
         "-monitor", "none", "-no-reboot", "-cpu", "neoverse-n1", "-smp", "2",
         "-m", "512M", "-accel", "tcg,thread=multi")  # fmt: skip
_BOARD = "virt,gic-version=3,dtb-randomness=off"
_BOOT = "console=ttyAMA0 nokaslr panic=-1"
# Seconds; a boot takes five, on a crowded machine a hundred times that.
_PATIENCE = 600
_RESERVED = 16
_PAGE = 4096
_SYSFS = "/sys/devices/system/cpu/cpu{}/cache/index*/*"


def _boot(directory: Path, kernel: Path, initrd: bytes, boot: str, *more: str) -> str:
    """Boot a guest that does nothing; return its log."""
    (directory / "initrd").write_bytes(initrd)
    log = directory / "log"
    subprocess.run(
        [*_QEMU, "-kernel", kernel, "-initrd", directory / "initrd", "-append",
         f"{_BOOT} {boot}", "-serial", f"file:{log}", *more],
        check=True, timeout=_PATIENCE,
    )  # fmt: skip
    return log.read_text(errors="replace")


def _check(log: str, says: str) -> None:
    """The guest ran to its end, and wrote this one line."""
    assert "reboot: Power down" in log, log[-2000:]
    assert not re.search(r"Kernel panic|Internal error|BUG:|Unable to handle", log), log
    assert re.findall(r"^zero page: (.*?)\r?$", log, re.M) == [says]


@pytest.fixture(scope="session")
def base_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """QEMU's own device tree of two CPUs."""
    blob = tmp_path_factory.mktemp("base") / "dtb"
    output([*_QEMU, "-M", f"{_BOARD},dumpdtb={blob}"])
    return blob


@pytest.fixture(scope="session")
def initrd(reporter: Reporter) -> bytes:
    init = build_program("guest", reporter).read_bytes()
    return cpio.console_archive() + cpio.archive({"/init": init, "/cell/commands": b""})


@pytest.mark.parametrize("tree", [*GOOD_TREES, *BAD_TREES], ids=lambda tree: tree.name)
@pytest.mark.parametrize("release", sorted(releases()))
def test_device_tree(
    images: Images, initrd: bytes, base_tree: Path, tmp_path: Path, release: str, tree: Tree
) -> None:
    source, overlay, blob = (tmp_path / f"tree.{end}" for end in ("dts", "dtbo", "dtb"))
    source.write_text(tree.source())
    output(["dtc", "-q", "-I", "dts", "-O", "dtb", "-o", overlay, source])
    output(["fdtoverlay", "-i", base_tree, "-o", blob, overlay])
    log = _boot(
        tmp_path,
        images(release, True),
        initrd,
        " ".join(tree.boot),
        "-M",
        _BOARD,
        "-dtb",
        str(blob),
    )
    _check(log, tree.says)


@pytest.mark.parametrize("table", [*GOOD_TABLES, *BAD_TABLES], ids=lambda table: table.name)
@pytest.mark.parametrize("release", sorted(releases()))
def test_pptt(images: Images, initrd: bytes, tmp_path: Path, release: str, table: Table) -> None:
    log = _boot(
        tmp_path,
        images(release, True),
        as_archive(table.data) + initrd,
        "acpi=force",
        "-M",
        _BOARD,
        "-bios",
        FIRMWARE,
    )
    _check(log, table.says)


def _line(machine: Machine, source: str) -> str:
    """What the kernel says of a machine of the catalogue."""
    ways = [kind.l1d.way_size for kind in machine.cpu_kinds()]
    colors = max(min(max(ways) // _PAGE, _RESERVED), 1)
    return (
        f"{colors} color{'' if colors == 1 else 's'}, L1D way {max(ways) // 1024} KiB "
        f"from {source} (cpu{ways.index(max(ways))})"
    )


def _told(kind: str, level: int, cache: Cache) -> dict[str, str]:
    return {
        "type": kind,
        "level": str(level),
        "size": f"{cache.size // 1024}K",
        "ways_of_associativity": str(cache.ways),
        "number_of_sets": str(cache.sets),
        "coherency_line_size": str(cache.line),
    }


def _caches(machine: Machine) -> list[list[dict[str, str]]]:
    """What sysfs must say of each CPU's caches."""
    expected = []
    for kind in machine.cpu_kinds():
        caches = [_told("Data", 1, kind.l1d), _told("Instruction", 1, kind.l1i)]
        caches += [_told("Unified", 2, kind.l2)] if kind.l2 else []
        caches += [_told("Unified", 3, machine.l3)] if machine.l3 else []
        expected.append(caches)
    return expected


def _seen(lines: list[dict[str, Any]]) -> list[list[dict[str, str]]]:
    """What sysfs said, one line of files for each CPU."""
    seen = []
    for line in lines:
        caches: dict[str, dict[str, str]] = {}
        for path, text in line["files"].items():
            index, name = path.split("/")[-2:]
            if name in _told("", 0, load_machine("thunderx2").cpus[0].l1d):
                caches.setdefault(index, {})[name] = text.strip()
        seen.append(sorted(caches.values(), key=lambda cache: (cache["level"], cache["type"])))
    return seen


@pytest.mark.parametrize("name", machine_names())
@pytest.mark.parametrize("source", ["DT", "PPTT"])
@pytest.mark.parametrize("release", sorted(releases()))
def test_machine_of_the_catalogue(
    images: Images, reporter: Reporter, tmp_path: Path, release: str, source: str, name: str
) -> None:
    """By either description sysfs has the machine's caches, and the kernel their colours."""
    machine = load_machine(name)
    log = tmp_path / "log"
    guest = Guest(
        images(release, True),
        build_program("guest", reporter),
        machine,
        (),
        tuple(f"/ftbench --files {_SYSFS.format(cpu)}" for cpu in range(machine.count)),
        {"/ftbench": build_program("bench", reporter)},
        cpus=machine.count,
        timing="parallel",
        acpi=source == "PPTT",
    )
    assert _seen(guest.run(log)) == _caches(machine)
    _check(log.read_text(errors="replace"), _line(machine, source))


def test_at_least_forty_broken_descriptions() -> None:
    names = [f"{type(case).__name__}: {case.name}" for case in (*BAD_TREES, *BAD_TABLES)]
    assert len(set(names)) == len(names) >= 40


@pytest.mark.parametrize("table", GOOD_TABLES, ids=lambda table: table.name)
def test_good_tables_are_as_iasl_reads_them(tmp_path: Path, table: Table) -> None:
    """The generator is right where it means to be."""
    binary = tmp_path / "pptt.aml"
    binary.write_bytes(table.data)
    said = subprocess.run(
        ["iasl", "-d", binary], check=True, capture_output=True, text=True, cwd=tmp_path
    )
    text = (tmp_path / "pptt.dsl").read_text()
    assert "Error" not in said.stdout + said.stderr
    assert "Invalid" not in text
    assert "Unknown" not in text
    sizes = {int(size, 16) for size in re.findall(r"  Size : ([0-9A-F]{8})", text)}
    assert L2.size in sizes
