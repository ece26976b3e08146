# SPDX-License-Identifier: GPL-2.0
"""What QEMU gets for a guest: arguments and files, and the key that is their digest.

One function makes the arguments: with the files' paths for the command, with their digests for
the key, which so depends on the bytes that QEMU gets, and not on where they are stored.
"""

from __future__ import annotations

import functools
import hashlib
import shutil
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from firsttouch.building.host_tools import DTC, find_tool, qemu_cpus
from firsttouch.building.program_root import archive, write_members
from firsttouch.catalog.kernels import Port, load_architecture
from firsttouch.catalog.machines import Cache, Machine
from firsttouch.errors import HostError
from firsttouch.files import digest, digest_bytes, digest_file
from firsttouch.processes import output
from firsttouch.vm.guest import Clock, Guest

# Start of RAM of QEMU's virt board.
_RAM_BASE = 0x4000_0000
_TIMINGS: Mapping[Clock, tuple[str, ...]] = {
    # The seed is of what RNDR returns, on CPUs that have it.
    "identical": (
        "-icount", "shift=0,sleep=off", "-rtc", "base=2026-01-01T00:00:00,clock=vm", "-seed", "1",
    ),
    "interleaved": ("-accel", "tcg,thread=single"),
    "parallel": ("-accel", "tcg,thread=multi"),
    # The names of its threads tell which is a vCPU.
    "hardware": ("-accel", "kvm", "-name", "firsttouch,debug-threads=on"),
}  # fmt: skip
# Stage 2 must not fault while a guest is measured.
_POPULATED = ",prealloc=on"
# The results channel. With ioeventfd, QEMU's main loop would serve the device on
# PCI when the host schedules it.
_PORTS: Mapping[Port, str] = {
    "mmio": "virtio-serial-device",
    "pci": "virtio-serial-pci,ioeventfd=off",
}
# Names of the files that the guest and the plugin write; in a key they stand for the paths.
LOG, RESULTS, COUNTS = "kernel log", "results", "counts"
# Follows the initial RAM disk, in the same file.
_INITRD, _ARCHIVE = "initial RAM disk", "archive"


@dataclass(frozen=True)
class Inputs:
    """The bytes that QEMU gets for a guest: existing files, and blobs that this module makes."""

    files: Mapping[str, Path]
    blobs: Mapping[str, bytes]
    qemu: str

    def digests(self) -> dict[str, str]:
        """Return the SHA-256 of each file and blob, and of QEMU itself."""
        return {
            **{name: file_digest(path) for name, path in self.files.items()},
            **{name: digest_bytes(blob) for name, blob in self.blobs.items()},
            "QEMU": file_digest(Path(find_tool(self.qemu))),
        }


def inputs(guest: Guest) -> Inputs:
    """Return the files and blobs that QEMU gets for `guest`.

    Raises HostError if QEMU or the device tree compiler is missing or fails.
    """
    files = {
        "kernel image": guest.image,
        "disk": guest.disk,
        "PMU": guest.pmu and guest.pmu.plugin,
        "symbols": guest.pmu and guest.pmu.symbols,
        _ARCHIVE: guest.archive,
    }
    blobs = {_INITRD: guest_archive(guest)}
    architecture = load_architecture(guest.machine.architecture)
    qemu = architecture.qemu
    if architecture.device_tree:
        disk = (_RAM_BASE + guest.memory, guest.disk.stat().st_size) if guest.disk else None
        # A tree needs no memory.
        board = (qemu, *(word.replace(_POPULATED, "") for word in board_arguments(guest)))
        blobs["device tree"] = device_tree(board, guest.machine, guest.cpus, disk, guest.kaslr_seed)
    return Inputs({name: file for name, file in files.items() if file}, blobs, qemu)


def command(guest: Guest, folder: Path, log: Path) -> list[str]:
    """Write the blobs for `guest` into `folder`, and return the command that runs it.

    The kernel's log goes to `log`. The other files that the guest and the
    plugin write go into `folder`.
    """
    given = inputs(guest)
    files = {name: str(path) for name, path in given.files.items()}
    for name, blob in given.blobs.items():
        file = folder / name.replace(" ", "-")
        file.write_bytes(blob)
        files[name] = str(file)
    if guest.archive:
        with Path(files[_INITRD]).open("ab") as whole, guest.archive.open("rb") as archive:
            shutil.copyfileobj(archive, whole)
    files |= {LOG: str(log), RESULTS: str(folder / RESULTS), COUNTS: str(folder / COUNTS)}
    return [given.qemu, *arguments(guest, files)]


def guest_key(guest: Guest) -> str:
    """Return the digest of everything that decides what `guest` does: QEMU, arguments, files."""
    digests = inputs(guest).digests()
    names = {name: f"sha256:{value}" for name, value in digests.items()}
    if guest.archive:
        names[_INITRD] += names[_ARCHIVE]
    names |= {written: written for written in (LOG, RESULTS, COUNTS)}
    return digest({"QEMU": digests["QEMU"], "arguments": arguments(guest, names)})


def arguments(guest: Guest, files: Mapping[str, str]) -> list[str]:
    """Return QEMU's arguments; `files` maps LOG, RESULTS, COUNTS and each of `inputs` to a path."""
    tree = ["-dtb", files["device tree"]] if "device tree" in files else []
    disk = []
    if guest.disk:
        file, address = option_value(files["disk"]), _RAM_BASE + guest.memory
        disk = ["-device", f"loader,file={file},addr={address:#x},force-raw=on"]
    plugin = []
    if guest.pmu:
        options = [f"file={option_value(files['PMU'])}", f"out={option_value(files[COUNTS])}"]
        if guest.pmu.symbols:
            options.append(f"profile={option_value(files['symbols'])}")
        plugin = ["-plugin", ",".join([*options, *guest.pmu.options(guest.machine, guest.cpus)])]
    return [
        *board_arguments(guest),
        "-kernel", files["kernel image"],
        "-initrd", files[_INITRD],
        "-append", guest.command_line(),
        "-serial", f"file:{files[LOG]}",
        *results_port(guest, files[RESULTS]),
        *tree,
        *disk,
        *plugin,
    ]  # fmt: skip


def results_port(guest: Guest, file: str) -> list[str]:
    """Return QEMU's arguments of the channel on which a guest writes results to `file`."""
    return [
        "-device", _PORTS[guest.port],
        "-chardev", f"file,id=results,path={option_value(file)}",
        "-device", "virtserialport,chardev=results,name=results",
    ]  # fmt: skip


def board_arguments(guest: Guest) -> list[str]:
    """Return QEMU's arguments that name no file."""
    memory = guest.memory + (guest.disk.stat().st_size if guest.disk else 0)
    hardware = guest.timing == "hardware"
    architecture = load_architecture(guest.machine.architecture)
    backend = ["-object", f"memory-backend-ram,id=ram,size={memory >> 20}M{_POPULATED}"]
    return [
        "-nodefaults", "-no-user-config", "-display", "none", "-monitor", "none", "-no-reboot",
        "-M", ",".join((
            architecture.hardware_board if hardware else architecture.board,
            *guest.board,
            *["memory-backend=ram"] * hardware,
        )),
        "-cpu", guest.machine.qemu_cpu,
        "-smp", str(guest.cpus),
        "-m", f"{memory >> 20}M",
        *_nodes(guest, memory),
        *(backend if hardware else []),
        *_TIMINGS[guest.timing],
    ]  # fmt: skip


def _nodes(guest: Guest, memory: int) -> list[str]:
    if guest.nodes == 1:
        return []
    share = guest.memory // guest.nodes
    words = []
    for node in range(guest.nodes):
        size = share if node < guest.nodes - 1 else memory - share * node
        cpus = f"cpus=0-{guest.cpus - 1}," if node == 0 else ""
        words += [
            "-object", f"memory-backend-ram,id=node{node},size={size >> 20}M",
            "-numa", f"node,nodeid={node},{cpus}memdev=node{node}",
        ]  # fmt: skip
    return words


def option_value(path: str) -> str:
    return path.replace(",", ",,")


@functools.lru_cache(maxsize=256)
def file_digest(path: Path) -> str:
    """Return a file's SHA-256, computed once: the files do not change during a run."""
    return digest_file(path)


@functools.lru_cache(maxsize=1024)
def device_tree(
    qemu: tuple[str, ...], machine: Machine, cpus: int, disk: tuple[int, int] | None, seed: int
) -> bytes:
    """Return the device tree blob for a guest started by `qemu`, its command line without files.

    `disk` is the guest physical address and the size, in bytes, of a RAM-backed disk. `seed` is
    for KASLR and, hashed, for the kernel's random numbers.
    """
    # Names without a path, because a comma in a path would end QEMU's option.
    with tempfile.TemporaryDirectory(prefix="firsttouch-tree-") as folder:
        command = list(qemu)
        command[command.index("-M") + 1] += ",dumpdtb=base"
        try:
            output(command, cwd=Path(folder))
        except HostError:
            machine.check_cpu(qemu_cpus())
            raise
        Path(folder, "source").write_text(_overlay(machine, cpus, disk, seed))
        # No -@, because the overlay gives all targets by path.
        compile_overlay = [DTC, "-q", "-I", "dts", "-O", "dtb", "-o", "overlay", "source"]
        output(compile_overlay, cwd=Path(folder))
        output(["fdtoverlay", "-i", "base", "-o", "tree", "overlay"], cwd=Path(folder))
        return Path(folder, "tree").read_bytes()


def _overlay(machine: Machine, cpus: int, disk: tuple[int, int] | None, seed: int) -> str:
    """Return the overlay's source: cache properties of each CPU, cache nodes, seeds, the disk."""
    lines = ["/dts-v1/;", "/plugin/;"]
    nodes = []
    l3 = "next-level-cache = <&l3>;" if machine.l3 else ""
    for number, kind in enumerate(machine.kinds_of(cpus)):
        below = l3
        if kind.l2:
            below = f"next-level-cache = <&cpu{number}_l2>;"
            nodes.append(_cache_node(f"cpu{number}_l2: cpu{number}-l2-cache", 2, kind.l2, l3))
        # State both the L1D and the L1I: if one is missing, the kernel counts no
        # leaf for level 1, and the L2 is lost too.
        l1 = f"{_geometry('d-', kind.l1d)} {_geometry('i-', kind.l1i)}"
        lines.append(f"&{{/cpus/cpu@{number}}} {{ {l1} {below} }};")
    if machine.l3:
        nodes.append(_cache_node("l3: l3-cache", 3, machine.l3, ""))
    if nodes:
        lines += ["&{/cpus} {", *nodes, "};"]
    # A kernel without a seed hashes all its entropy for each number that it needs, such as for
    # the offset of the stack in each system call: some 10,000 instructions. A machine that has
    # run for minutes has a seed. The kernel takes 256 bits as enough.
    random = hashlib.sha256(seed.to_bytes(8)).hexdigest()
    lines.append(f"&{{/chosen}} {{ kaslr-seed = {_cells(seed)}; rng-seed = [{random}]; }};")
    if disk:
        pmem = f'compatible = "pmem-region"; reg = {_cells(*disk)};'
        lines.append(f"&{{/}} {{ pmem@{disk[0]:x} {{ {pmem} }}; }};")
    return "\n".join(lines) + "\n"


def _geometry(prefix: str, cache: Cache) -> str:
    values = {"size": cache.size, "line-size": cache.line, "sets": cache.sets}
    return " ".join(f"{prefix}cache-{name} = <{value}>;" for name, value in values.items())


def _cache_node(name: str, level: int, cache: Cache, below: str) -> str:
    kind = f'compatible = "cache"; cache-level = <{level}>; cache-unified;'
    return f"{name} {{ {kind} {_geometry('', cache)} {below} }};"


def _cells(*values: int) -> str:
    """Return values of 64 bits, each as two cells."""
    return f"<{' '.join(f'{value >> 32:#x} {value & 0xFFFFFFFF:#x}' for value in values)}>"


def guest_archive(guest: Guest) -> bytes:
    """Return a guest's initial RAM disk: init, the guest's files, and its commands."""
    # guest/init.c reads the files in /cell.
    orders = {"/cell/commands": "".join(f"{command}\n" for command in guest.commands).encode()}
    if guest.disk:
        orders["/cell/mount-disk"] = b""
    if guest.measures:
        orders["/cell/settle"] = b""
    return console_archive() + archive({"/init": guest.init, **guest.files}) + archive(orders)


def console_archive() -> bytes:
    """Return an archive with /dev/console: init's standard output before it mounts /dev."""
    return b"".join(write_members({"dev/console": (stat.S_IFCHR | 0o600, b"")}))
