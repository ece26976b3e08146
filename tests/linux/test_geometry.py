# SPDX-License-Identifier: GPL-2.0
"""Zero pages and the firmware's word on the caches: guests booted by device tree and by PPTT."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from firsttouch import cpio
from firsttouch.guest import Guest
from firsttouch.machines import Machine, load_machine, machine_names
from firsttouch.pptt import table as machine_table
from firsttouch.processes import output
from firsttouch.programs import build_program
from firsttouch.progress import Reporter
from firsttouch.sources import releases
from tests.linux.cache_tables import BAD_TABLES, GOOD_TABLES, L2, Table
from tests.linux.cache_trees import BAD_TREES, GOOD_TREES, Tree

pytestmark = pytest.mark.kernel

Images = Callable[[str, bool], Path]

_QEMU = ("qemu-system-aarch64", "-nodefaults", "-no-user-config", "-display", "none",
         "-monitor", "none", "-no-reboot", "-cpu", "neoverse-n1", "-smp", "2",
         "-m", "512M", "-accel", "tcg,thread=multi")  # fmt: skip
_BOARD = "virt,gic-version=3,dtb-randomness=off"
_FIRMWARE = "/usr/share/qemu-efi-aarch64/QEMU_EFI.fd"
_BOOT = "console=ttyAMA0 nokaslr panic=-1"
# Booted by ACPI the lab's kernel has no PCI, without which ACPI's name space
# does not load, and with it the serial port's driver.
_BY_ACPI = "acpi=force earlycon=pl011,0x9000000 keep_bootcon"
# Seconds; a boot takes five, on a crowded machine a hundred times that.
_PATIENCE = 600
_RESERVED = 16
_PAGE = 4096


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


def _boot_by_acpi(directory: Path, kernel: Path, initrd: bytes, table: bytes, *more: str) -> str:
    upgrade = cpio.archive({"kernel/firmware/acpi/pptt.aml": table})
    return _boot(
        directory, kernel, upgrade + initrd, _BY_ACPI, "-M", _BOARD, "-bios", _FIRMWARE, *more
    )


@pytest.mark.parametrize("table", [*GOOD_TABLES, *BAD_TABLES], ids=lambda table: table.name)
@pytest.mark.parametrize("release", sorted(releases()))
def test_pptt(images: Images, initrd: bytes, tmp_path: Path, release: str, table: Table) -> None:
    log = _boot_by_acpi(tmp_path, images(release, True), initrd, table.data)
    _check(log, table.says)


def _expected(machine: Machine, source: str) -> str:
    """What the kernel says of a machine of the catalogue."""
    ways = [kind.l1d.way_size for kind in machine.cpu_kinds()]
    colors = max(min(max(ways) // _PAGE, _RESERVED), 1)
    return (
        f"{colors} color{'' if colors == 1 else 's'}, L1D way {max(ways) // 1024} KiB "
        f"from {source} (cpu{ways.index(max(ways))})"
    )


@pytest.mark.parametrize("name", machine_names())
@pytest.mark.parametrize("release", sorted(releases()))
def test_machine_by_device_tree(
    images: Images, reporter: Reporter, tmp_path: Path, release: str, name: str
) -> None:
    machine = load_machine(name)
    log = tmp_path / "log"
    Guest(
        images(release, True),
        build_program("guest", reporter),
        machine,
        (),
        (),
        cpus=machine.count,
        identical=False,
    ).execute(log)
    _check(log.read_text(errors="replace"), _expected(machine, "DT"))


@pytest.mark.parametrize("name", machine_names())
@pytest.mark.parametrize("release", sorted(releases()))
def test_machine_by_pptt(
    images: Images, initrd: bytes, tmp_path: Path, release: str, name: str
) -> None:
    machine = load_machine(name)
    table = machine_table(machine, machine.count)
    log = _boot_by_acpi(tmp_path, images(release, True), initrd, table, "-smp", str(machine.count))
    _check(log, _expected(machine, "PPTT"))


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
