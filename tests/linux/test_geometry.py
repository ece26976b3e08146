# SPDX-License-Identifier: GPL-2.0
"""Zero pages and the firmware's description of caches: guests with device tree and PPTT."""

import re
import struct
import subprocess
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark import ParameterSet

from firsttouch.building.host_tools import cross_compile
from firsttouch.building.program_root import archive
from firsttouch.building.programs import BENCH
from firsttouch.catalog.kernels import release_names
from firsttouch.catalog.machines import Cache, Machine, load_machine
from firsttouch.files import MACHINES, REPOSITORY
from firsttouch.processes import output
from firsttouch.progress import Reporter
from firsttouch.tables import Fields, names_in
from firsttouch.vm import qemu
from firsttouch.vm.supervision import Done
from tests.linux.conftest import MakeGuest
from tests.linux.outcomes import Outcomes
from tests.support.kernels import releases_with_stock

pytestmark = pytest.mark.kernel

Images = Callable[[str, bool], Path]
Case = dict[str, Any]

_DATA = tomllib.loads((REPOSITORY / "tests/data/caches.toml").read_text())
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


def _cases(kind: str) -> list[ParameterSet]:
    *older, newest = release_names()
    return [
        pytest.param(
            release,
            case,
            id=f"{release}-{case['name']}",
            marks=()
            if case.get("on") == "all" or (case.get("on"), release) == ("newest", newest)
            else pytest.mark.regress,
        )
        for release in (*older, newest)
        for case in _DATA[kind]
    ]


def _boot(directory: Path, kernel: Path, initrd: bytes, boot: str, *more: str) -> str:
    """Boot a guest that does nothing; return its log."""
    (directory / "initrd").write_bytes(initrd)
    log = directory / "log"
    subprocess.run(
        [*_QEMU, "-M", _BOARD, "-kernel", kernel, "-initrd", directory / "initrd", "-append",
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


# The lab's init would wait five seconds for a results channel.
_INIT = "#include <sys/reboot.h>\nint main(void) { return reboot(RB_POWER_OFF); }\n"


@pytest.fixture(scope="session")
def initrd(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    init = tmp_path_factory.mktemp("init") / "init"
    compiler = [f"{cross_compile()}gcc", "-static", "-x", "c", "-o", str(init), "-"]
    subprocess.run(compiler, input=_INIT, text=True, check=True)
    return qemu.console_archive() + archive({"/init": init.read_bytes()})


def tree_source(case: Case) -> str:
    """The overlay that makes QEMU's device tree that of a case."""
    nodes = case.get("nodes", {"l2_0": {}, "l2_1": {}})
    below = case.get("below", ["<&l2_0>", "<&l2_1>"])
    lines = ["/dts-v1/;", "/plugin/;"]
    for number, changed in enumerate(case.get("cpus", [{}, {}])):
        caches = {f"d-cache-{k}": v for k, v in {**case.get("l1d", {}), **(changed or {})}.items()}
        own = {} if changed is False else {**_DATA["tree_l1"], **caches}
        lines += [
            f'/ {{ fragment@{number} {{ target-path = "/cpus/cpu@{number}"; __overlay__ {{',
            *_properties({**own, "next-level-cache": below[number] or False}),
            "}; }; };",
        ]
    lines.append('/ { fragment@99 { target-path = "/cpus"; __overlay__ {')
    for label, changed in nodes.items():
        lines += [f"{label}: {label.replace('_', '-')} {{"]
        lines += [*_properties({**_DATA["tree_l2"], **changed}), "};"]
    return "\n".join([*lines, "}; }; };\n"])


def _properties(properties: Mapping[str, str | bool | list[int]]) -> Iterator[str]:
    for name, value in properties.items():
        if isinstance(value, list):
            value = f"<{' '.join(map(hex, value))}>"
        if value is not False:
            yield f"{name} = {value};" if value else f"{name};"


@pytest.mark.parametrize(("release", "case"), _cases("tree"))
def test_device_tree(
    images: Images, initrd: bytes, tmp_path: Path, release: str, case: Case
) -> None:
    base, source, overlay, blob = (tmp_path / f"{n}" for n in ("base", "dts", "dtbo", "dtb"))
    output([*_QEMU, "-M", f"{_BOARD},dumpdtb={base}"])
    source.write_text(tree_source(case))
    output(["dtc", "-q", "-I", "dts", "-O", "dtb", "-o", overlay, source])
    output(["fdtoverlay", "-i", base, "-o", blob, overlay])
    log = _boot(tmp_path, images(release, True), initrd, "", "-dtb", str(blob))
    _check(log, case.get("colors", 1), case.get("cpu", 0))


# -- ACPI's Processor Properties Topology Table, right or wrong
#
# Layouts: ACPI Specification 6.5, 5.2.6 (table header), 5.2.30 (PPTT). The kernel takes the
# table from the initial RAM disk instead of the firmware's
# (Documentation/admin-guide/acpi/initrd_table_override.rst).

# Of Debian's qemu-efi-aarch64: ACPI tables reach a guest through UEFI.
_FIRMWARE = Path("/usr/share/qemu-efi-aarch64/QEMU_EFI.fd")

_HEADER = struct.Struct("<4sIBB6s8sI4sI")
# type, length, reserved, flags, parent, processor ID, number of resources
_PROCESSOR = struct.Struct("<BBHIIII")
_PACKAGE, _ID_VALID, _LEAF = 1 << 0, 1 << 1, 1 << 3
# type, length, reserved, flags, next level, size, sets, ways, attributes, line, cache ID
_CACHE = struct.Struct("<BBHIIIIBBHI")
# Attributes: read and write allocate in bits 1:0, the type in bits 3:2.
_ALLOCATE = 0x2
_FOR_DATA, _FOR_CODE, _FOR_BOTH = 0x0, 0x4, 0x8


@dataclass(frozen=True)
class Entry:
    """A cache structure; `below` is the next level's place among the caches of the same CPU.

    Flags: size, sets, ways, allocation, type, write policy and line size are valid.
    """

    size: int
    sets: int
    ways: int
    line: int
    below: int | None = None
    kind: int = _FOR_DATA
    flags: int = 0x7F

    def packed(self, first: int) -> bytes:
        below = 0 if self.below is None else first + self.below * _CACHE.size
        return _CACHE.pack(
            1, _CACHE.size, 0, self.flags, below, self.size, self.sets, self.ways & 0xFF,
            _ALLOCATE | self.kind, self.line & 0xFFFF, 0,
        )  # fmt: skip


def table(cpus: Sequence[Sequence[Entry]], *, parent_is_itself: bool = False) -> bytes:
    """A package with these CPUs, whose UIDs count from 0."""
    body = bytearray(_HEADER.size)
    package = len(body)
    body += _processor(_PACKAGE, package if parent_is_itself else 0, 0, ())
    for uid, caches in enumerate(cpus):
        first = len(body)
        for cache in caches:
            body += cache.packed(first)
        own = [first + n * _CACHE.size for n, c in enumerate(caches) if c.kind != _FOR_BOTH]
        body += _processor(_ID_VALID | _LEAF, package, uid, own)
    # It replaces QEMU's table: same makers' names, a higher revision.
    _HEADER.pack_into(body, 0, b"PPTT", 0, 3, 0, b"BOCHS ", b"BXPC    ", 2, b"FTCH", 1)
    return sealed(bytes(body))


def _processor(flags: int, parent: int, number: int, resources: Sequence[int]) -> bytes:
    length = _PROCESSOR.size + 4 * len(resources)
    head = _PROCESSOR.pack(0, length, 0, flags, parent, number, len(resources))
    return head + struct.pack(f"<{len(resources)}I", *resources)


def sealed(data: bytes) -> bytes:
    """`data` with its length and its checksum: all bytes of a table add up to 0."""
    data = data[:4] + struct.pack("<I", len(data)) + data[8:9] + b"\0" + data[10:]
    return data[:9] + bytes([-sum(data) & 0xFF]) + data[10:]


def table_data(case: Case) -> bytes:
    """The PPTT of a case, as the bytes that the guest finds."""
    l1d, l2 = (Entry(**_DATA[name]) for name in ("table_l1d", "table_l2"))
    cpus = [
        # In the order in which `below` counts them.
        [
            replace(l1d, **case.get("l1d", {}), **changed),
            replace(l1d, kind=_FOR_CODE),
            replace(l2, **case.get("l2", {}), kind=_FOR_BOTH),
        ]
        if changed is not False
        else []
        for changed in case.get("cpus", [{}, {}])
    ]
    data = table(cpus, parent_is_itself=case.get("parent_is_itself", False))
    if "xor" in case:
        place, bits = case["xor"]
        data = data[:place] + bytes([data[place] ^ bits]) + data[place + 1 :]
    data = data[: case.get("bytes")] + bytes(case.get("more", 0))
    return sealed(data) if case.get("sealed") else data


@pytest.mark.parametrize(("release", "case"), _cases("table"))
def test_pptt(images: Images, initrd: bytes, tmp_path: Path, release: str, case: Case) -> None:
    ram_disk = archive({"kernel/firmware/acpi/pptt.aml": table_data(case)}) + initrd
    firmware = ("-bios", str(_FIRMWARE))
    log = _boot(tmp_path, images(release, True), ram_disk, "acpi=force", *firmware)
    _check(log, case.get("colors", 1), case.get("cpu", 0))


# Files of sysfs that describe a cache.
_TOLD = ("type", "level", "size", "ways_of_associativity", "number_of_sets", "coherency_line_size")


def _as_sysfs(kind: str, level: int, cache: Cache) -> dict[str, str]:
    figures = (kind, level, f"{cache.size // 1024}K", cache.ways, cache.sets, cache.line)
    return dict(zip(_TOLD, map(str, figures), strict=True))


def _caches(machine: Machine) -> list[list[dict[str, str]]]:
    """What sysfs must say of each CPU's caches."""
    expected = []
    for kind in machine.kinds_of(machine.count):
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
        for path, text in Fields("sysfs", line).table("files").values_of(str).items():
            index, name = path.split("/")[-2:]
            if name in _TOLD:
                caches.setdefault(index, {})[name] = text.strip()
        seen.append(sorted(caches.values(), key=lambda cache: (cache["level"], cache["type"])))
    return seen


@pytest.mark.parametrize("name", names_in(MACHINES))
@pytest.mark.parametrize("release", releases_with_stock())
def test_machine_of_the_catalogue(
    make_guest: MakeGuest, outcomes: Outcomes, reporter: Reporter, release: str, name: str
) -> None:
    """sysfs shows the machine's caches, the kernel their colours."""
    machine = load_machine(name)
    guest = replace(
        make_guest(release, None),
        machine=machine,
        commands=tuple(f"/ftbench --files {_SYSFS.format(cpu)}" for cpu in range(machine.count)),
        files={"/ftbench": BENCH.obtain(reporter)},
        cpus=machine.count,
    )
    outcome = outcomes.of(guest, f"{release} {name}")
    assert all(done.status == 0 for done in outcome.commands)
    assert _seen(outcome.commands) == _caches(machine)
    ways = [kind.l1d.way_size for kind in machine.kinds_of(machine.count)]
    colors = max(min(max(ways) // _PAGE, _RESERVED), 1)
    _check("\n".join(outcome.log), colors, ways.index(max(ways)))
