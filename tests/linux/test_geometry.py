# SPDX-License-Identifier: GPL-2.0
"""Zero pages and the firmware's description of caches: guests with device tree and PPTT."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from firsttouch.building.host_tools import cross_compile
from firsttouch.building.programs import build_ftbench
from firsttouch.catalog.machines import Cache, Machine, load_machine, machine_names
from firsttouch.catalog.releases import release_names
from firsttouch.processes import output
from firsttouch.progress import Reporter
from firsttouch.tables import Fields as JsonTable
from firsttouch.vm import initramfs
from firsttouch.vm.protocol import Done
from tests.linux.cache_tables import BAD_TABLES, GOOD_TABLES, L2, Table
from tests.linux.cache_trees import BAD_TREES, GOOD_TREES, Tree
from tests.linux.conftest import MakeGuest
from tests.linux.outcomes import Outcomes
from tests.support import pptt

pytestmark = pytest.mark.kernel

Images = Callable[[str, bool], Path]

# With -icount, so that no boot waits for time to pass.
_QEMU = ("qemu-system-aarch64", "-nodefaults", "-no-user-config", "-display", "none",
         "-monitor", "none", "-no-reboot", "-cpu", "neoverse-n1", "-smp", "2",
         "-m", "512M", "-icount", "shift=0,sleep=off")  # fmt: skip
_BOARD = "virt,gic-version=3,dtb-randomness=off"
_BOOT = "console=ttyAMA0 nokaslr panic=-1"
# Seconds; a boot takes five, and up to a hundred times that on a busy host.
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


def _check(log: str, colors: int, cpu: int) -> None:
    """The guest ran to its end, and wrote one line with this number, of that CPU's L1D."""
    assert "reboot: Power down" in log, log[-2000:]
    assert not re.search(r"Kernel panic|Internal error|BUG:|Unable to handle", log), log
    (says,) = re.findall(r"\bzero page: (.*?)\r?$", log, re.M)
    assert re.match(rf"{colors} colors?, L1D of cpu{cpu}: ", says), says


@pytest.fixture(scope="session")
def base_tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """QEMU's own device tree of two CPUs."""
    blob = tmp_path_factory.mktemp("base") / "dtb"
    output([*_QEMU, "-M", f"{_BOARD},dumpdtb={blob}"])
    return blob


# The lab's init would wait five seconds for a results channel.
_INIT = "#include <sys/reboot.h>\nint main(void) { return reboot(RB_POWER_OFF); }\n"


@pytest.fixture(scope="session")
def initrd(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    init = tmp_path_factory.mktemp("init") / "init"
    subprocess.run(
        [f"{cross_compile()}gcc", "-static", "-x", "c", "-o", init, "-"],
        input=_INIT, text=True, check=True,
    )  # fmt: skip
    return initramfs.console_archive() + initramfs.archive({"/init": init.read_bytes()})


Description = Tree | Table


# What `make test` boots on the newest release: a description for each way through the code
# that sizes, and for each end of a walk. `make regress` boots all on each release.
_ONE_OF_EACH = {
    Tree: {
        # largest way decides, within the reserve
        "as it is", "larger second CPU", "way below a page", "more colours than reserved",
        "line size as block size",
        # not described, refused
        "no caches", "size missing", "sets missing", "line size missing", "100 sets",
        "a byte too many", "less than a way", "a way of 2 GiB", "all 2^32-1",
        "second CPU's sets missing", "second CPU without caches",
        # where the caches below lead
        "L2 its own next level", "L2 and L3 each other's next level",
        "next level that does not exist",
    },
    Table: {
        "as it is", "larger second CPU", "fully associative",
        "nothing valid", "size not valid", "sets not valid", "ways not valid", "ways 3",
        "a product of 2^32", "second CPU's ways not valid", "second CPU missing",
        "L1D its own next level", "L2 its own next level", "package its own parent",
        "next level beyond the table",
        # the table itself
        "sum wrong", "file shorter than its length", "cut within the second CPU",
        "structure of length zero",
    },
}  # fmt: skip


def _cases(good: Sequence[Description], bad: Sequence[Description]) -> list[ParameterSet]:
    """Each description on each release, all but a few for `make regress` alone."""
    *older, newest = release_names()
    names = {newest: _ONE_OF_EACH[type(good[0])]}
    names |= {release: {good[0].name, bad[0].name} for release in older}
    return [
        pytest.param(
            release,
            description,
            id=f"{release}-{description.name}",
            marks=() if description.name in names[release] else pytest.mark.regress,
        )
        for release in (*older, newest)
        for description in (*good, *bad)
    ]


@pytest.mark.parametrize(("release", "tree"), _cases(GOOD_TREES, BAD_TREES))
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
        "",
        "-M",
        _BOARD,
        "-dtb",
        str(blob),
    )
    _check(log, tree.colors, tree.cpu)


@pytest.mark.parametrize(("release", "table"), _cases(GOOD_TABLES, BAD_TABLES))
def test_pptt(images: Images, initrd: bytes, tmp_path: Path, release: str, table: Table) -> None:
    log = _boot(
        tmp_path,
        images(release, True),
        pptt.as_archive(table.data) + initrd,
        "acpi=force",
        "-M",
        _BOARD,
        "-bios",
        str(pptt.FIRMWARE),
    )
    _check(log, table.colors, table.cpu)


# Files of sysfs that describe a cache.
_TOLD = (
    "type",
    "level",
    "size",
    "ways_of_associativity",
    "number_of_sets",
    "coherency_line_size",
)


def _as_sysfs(kind: str, level: int, cache: Cache) -> dict[str, str]:
    figures = (kind, level, f"{cache.size // 1024}K", cache.ways, cache.sets, cache.line)
    return dict(zip(_TOLD, map(str, figures), strict=True))


def _caches(machine: Machine) -> list[list[dict[str, str]]]:
    """What sysfs must say of each CPU's caches."""
    expected = []
    for kind in machine.cpu_kinds():
        caches = [_as_sysfs("Data", 1, kind.l1d), _as_sysfs("Instruction", 1, kind.l1i)]
        caches += [_as_sysfs("Unified", 2, kind.l2)] if kind.l2 else []
        caches += [_as_sysfs("Unified", 3, machine.l3)] if machine.l3 else []
        expected.append(caches)
    return expected


def _seen(commands: Sequence[Done]) -> list[list[dict[str, str]]]:
    """What sysfs said; a command for each CPU."""
    seen = []
    for done in commands:
        (line,) = done.objects()
        caches: dict[str, dict[str, str]] = {}
        for path, text in JsonTable("sysfs", line).table("files").values_of(str).items():
            index, name = path.split("/")[-2:]
            if name in _TOLD:
                caches.setdefault(index, {})[name] = text.strip()
        seen.append(sorted(caches.values(), key=lambda cache: (cache["level"], cache["type"])))
    return seen


def _machines() -> list[ParameterSet]:
    """Each machine by each description; for `make test` each once, and two in all ways."""
    *_, newest = release_names()
    return [
        pytest.param(
            release,
            source,
            name,
            marks=()
            if name in ("neoverse-n1", "big-little-rk3588") or (release, source) == (newest, "DT")
            else pytest.mark.regress,
        )
        for release in release_names()
        for source in ("DT", "PPTT")
        for name in machine_names()
    ]


@pytest.mark.parametrize(("release", "source", "name"), _machines())
def test_machine_of_the_catalogue(
    make_guest: MakeGuest,
    outcomes: Outcomes,
    reporter: Reporter,
    release: str,
    source: str,
    name: str,
) -> None:
    """With either description sysfs shows the machine's caches, the kernel their colours."""
    machine = load_machine(name)
    firmware = source == "PPTT"
    guest = replace(
        make_guest(release, None),
        machine=machine,
        commands=tuple(f"/ftbench --files {_SYSFS.format(cpu)}" for cpu in range(machine.count)),
        files={"/ftbench": build_ftbench(reporter)},
        cpus=machine.count,
        firmware=pptt.FIRMWARE if firmware else None,
        tables=pptt.archive(machine, machine.count) if firmware else b"",
    )
    outcome = outcomes.of(guest, f"{release} {name} {source}")
    assert all(done.status == 0 for done in outcome.commands)
    assert _seen(outcome.commands) == _caches(machine)
    ways = [kind.l1d.way_size for kind in machine.cpu_kinds()]
    colors = max(min(max(ways) // _PAGE, _RESERVED), 1)
    _check("\n".join(outcome.log), colors, ways.index(max(ways)))


def test_one_of_each_is_a_description_that_exists() -> None:
    assert _ONE_OF_EACH[Tree] <= {tree.name for tree in (*GOOD_TREES, *BAD_TREES)}
    assert _ONE_OF_EACH[Table] <= {table.name for table in (*GOOD_TABLES, *BAD_TABLES)}


def test_at_least_forty_broken_descriptions() -> None:
    names = [f"{type(case).__name__}: {case.name}" for case in (*BAD_TREES, *BAD_TABLES)]
    assert len(set(names)) == len(names) >= 40


@pytest.mark.parametrize("table", GOOD_TABLES, ids=lambda table: table.name)
def test_good_tables_are_as_iasl_reads_them(tmp_path: Path, table: Table) -> None:
    """The generator's correct tables are correct."""
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
