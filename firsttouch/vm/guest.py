# SPDX-License-Identifier: GPL-2.0
"""A guest: an arm64 machine under QEMU that runs a few commands and is gone.

What the commands print comes back on a channel of its own; the kernel's log
is kept apart. The flags make each run the same to the last instruction; why
each is there stands in docs/identical-runs.md.
"""

from __future__ import annotations

import functools
import json
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from firsttouch.vm import initramfs as cpio
from tests.support import pptt
from firsttouch import processes
from firsttouch.build.store import digest, digest_file
from firsttouch.vm.devicetree import write_device_tree
from firsttouch.errors import GuestError, MachineError
from firsttouch.catalog.machines import Machine
from firsttouch.vm.pmu import Pmu, read_regions, region_metrics
from firsttouch.quantities import format_duration

QEMU = "qemu-system-aarch64"
MEMORY = 4 << 30
# The kernel, its page tables and its struct pages, the programs: what a
# measured mapping cannot have.
RESERVED_MEMORY = 512 << 20
# Start of RAM of QEMU's virt board.
_RAM_BASE = 0x4000_0000
# How a guest's CPUs run. identical: on a clock made of instructions, bit for
# bit the same each time. interleaved: by turns, in real time. parallel: at the
# same time; there QEMU lets the first touch of an LSE atomic arrive as a write.
Timing = Literal["identical", "interleaved", "parallel"]
_TIMINGS: dict[Timing, tuple[str, ...]] = {
    "identical": ("-icount", "shift=0,sleep=off", "-rtc", "base=2026-01-01T00:00:00,clock=vm"),
    "interleaved": ("-accel", "tcg,thread=single"),
    "parallel": ("-accel", "tcg,thread=multi"),
}
# Of Debian's qemu-efi-aarch64: ACPI tables reach a guest through UEFI.
FIRMWARE = "/usr/share/qemu-efi-aarch64/QEMU_EFI.fd"
# Every second the kernel brings its statistics up to date, and gives back free
# pages by the way: 820,000 instructions in one cell and none in its neighbour.
_QUIET = "sysctl.vm.stat_interval=3600"
_BOOT = ("console=ttyAMA0", "nokaslr", "panic=-1", "oops=panic", "loglevel=7")
_SPLATS = ("Kernel panic", "Internal error", "Oops", "BUG:", "WARNING:", "Unable to handle kernel")
# Seconds without a word on either channel, after which a guest counts as
# hung. The longest cell of the default plan is silent for a tenth of this.
SILENCE = 240.0
_LOG_LINES = 20
# What guest/init.c writes after each command, and after the last.
_COMMAND_ENDED = re.compile(r'\{"command": \d+, "status": (\d+)\}')
_ALL_ENDED = re.compile(r'\{"commands": \d+\}')


@dataclass(frozen=True)
class Done:
    """How one command of a guest ended: its exit status as a shell has it, and its output."""

    status: int
    lines: tuple[str, ...]


class StoppedError(Exception):
    """The run was told to stop before its guests had ended."""


@functools.cache
def qemu_version() -> str:
    """Return the first line of what QEMU says of its version; MachineError if it is missing."""
    if shutil.which(QEMU) is None:
        raise MachineError(f"{QEMU} is missing: run ./setup as root.")
    return processes.output([QEMU, "--version"]).splitlines()[0]


@dataclass(frozen=True)
class Guest:
    """All that decides what a guest does.

    `boot` is added to the kernel's command line; `commands` are run in
    order, words separated by blanks; `files` go into its initial RAM disk;
    `disk` is an image that the guest sees as RAM-backed /dev/pmem0, and
    finds mounted on /data unless `mounted` is not set.
    Its memory lies in `nodes` equal nodes, all CPUs on the first. Of the
    timings only identical ones give figures. `cpu` and
    `board` ask QEMU for another CPU than the machine's, such as ``max``, and
    for properties of the board, such as ``mte=on``. `acpi` guests learn of
    the machine's caches from a PPTT, the others, which alone can have a
    disk, from a device tree.
    """

    image: Path
    init: Path
    machine: Machine
    boot: tuple[str, ...]
    commands: tuple[str, ...]
    files: Mapping[str, Path] = field(default_factory=dict)
    disk: Path | None = None
    mounted: bool = True
    cpus: int = 1
    timing: Timing = "identical"
    memory: int = MEMORY
    nodes: int = 1
    cpu: str | None = None
    board: tuple[str, ...] = ()
    pmu: Pmu | None = None
    acpi: bool = False

    def identity(self) -> dict[str, Any]:
        """Return what decides the outcome, with files by their contents."""
        return {
            **self.hashes(),
            "machine": self.machine.identity(),
            "qemu": qemu_version(),
            "command_line": self.command_line(),
            "commands": list(self.commands),
            "mounted": self.mounted,
            "arguments": self._board(),
            "pmu_options": self.pmu.options(self.machine, self.cpus) if self.pmu else None,
        }

    def hashes(self) -> dict[str, Any]:
        """Return the SHA-256 of each file that the guest is made from."""
        return {
            "image": _digest(self.image),
            "init": _digest(self.init),
            "files": {name: _digest(path) for name, path in self.files.items()},
            "disk": _digest(self.disk) if self.disk else None,
            "pmu": _digest(self.pmu.plugin) if self.pmu else None,
        }

    def command_line(self) -> str:
        """Return the kernel's command line."""
        # A disk's RAM lies behind the RAM that the kernel may use.
        limit = [f"mem={self.memory >> 20}M"] if self.disk else []
        tables = ["acpi=force"] if self.acpi else []
        quiet = [_QUIET] if self.timing == "identical" else []
        return " ".join([*_BOOT, *quiet, *tables, *limit, *self.boot])

    def run(
        self, log: Path, *, silence: float = SILENCE, stop: threading.Event | None = None
    ) -> list[dict[str, Any]]:
        """Run the guest; return what its commands printed, one JSON object a line.

        Raises GuestError as `execute` does, and if a command fails or prints
        anything else.
        """
        by_command = self.run_commands(log, silence=silence, stop=stop)
        return [line for lines in by_command for line in lines]

    def run_commands(
        self, log: Path, *, silence: float = SILENCE, stop: threading.Event | None = None
    ) -> list[list[dict[str, Any]]]:
        """Run the guest; return for each command what it printed, as `run` does.

        What the PMU counted is among the metrics of the line that names the regions.
        """
        commands, counts = self._execute(log, silence, stop)
        results: list[list[dict[str, Any]]] = []
        for number, done in enumerate(commands):
            if done.status:
                raise GuestError(
                    f"command {number} of the guest failed with status {done.status}", _end(log)
                )
            results.append([_result(line, log) for line in done.lines])
        if counts is not None:
            _join([line for lines in results for line in lines], read_regions(counts), log)
        return results

    def execute(
        self,
        log: Path,
        *,
        silence: float = SILENCE,
        stop: threading.Event | None = None,
        splats: bool = False,
    ) -> list[Done]:
        """Run the guest; return how each of its commands ended and what it printed.

        `log` gets the kernel's log. Raises GuestError, with the end of the
        log, if the kernel splats (unless `splats` are expected), the guest
        is silent for `silence` seconds or ends before its commands do;
        StoppedError as soon as `stop` is set.
        """
        return self._execute(log, silence, stop, splats)[0]

    def _execute(
        self, log: Path, silence: float, stop: threading.Event | None, splats: bool = False
    ) -> tuple[list[Done], dict[str, Any] | None]:
        """Run the guest; return its commands' ends, and the PMU's counts if it has one."""
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_bytes(b"")
        with tempfile.TemporaryDirectory(prefix="firsttouch-guest-") as scratch:
            results, counts = Path(scratch, "results"), Path(scratch, "counts.json")
            results.write_bytes(b"")
            command = self._command(Path(scratch), log, results)
            if self.pmu:
                command += ["-plugin", self.pmu.argument(self.machine, self.cpus, counts)]
            complaint = self._watch(command, Path(scratch, "qemu"), log, results, silence, stop)
            if not splats:
                _check_splats(log)
            commands = _checked(results.read_text(errors="replace"), log, complaint)
            return commands, json.loads(counts.read_text()) if self.pmu else None

    def _watch(
        self,
        command: list[str],
        said: Path,
        log: Path,
        results: Path,
        silence: float,
        stop: threading.Event | None,
    ) -> str:
        """Run QEMU to its end; return what was wrong with that end, if anything."""
        with said.open("w") as sink, processes.kept(command, stdout=sink) as qemu:
            size, since = 0, time.monotonic()
            while qemu.poll() is None:
                time.sleep(0.05)
                if stop and stop.is_set():
                    raise StoppedError
                now = log.stat().st_size + results.stat().st_size
                if now != size:
                    size, since = now, time.monotonic()
                elif time.monotonic() - since > silence:
                    return f"gave no sign of life for {format_duration(silence)}"
        if qemu.returncode:
            return f"ended with QEMU's status {qemu.returncode}: {said.read_text().strip()[-200:]}"
        return ""

    def _board(self) -> list[str]:
        """Return QEMU's arguments but for the files that differ from run to run."""
        memory = self.memory + (self.disk.stat().st_size if self.disk else 0)
        return [
            "-nodefaults", "-no-user-config", "-display", "none", "-monitor", "none", "-no-reboot",
            "-M", ",".join(("virt,gic-version=3,dtb-randomness=off", *self.board)),
            "-cpu", self.cpu or self.machine.cpu,
            "-smp", str(self.cpus),
            "-m", f"{memory >> 20}M",
            *self._nodes(memory),
            *_TIMINGS[self.timing],
            *(("-bios", FIRMWARE) if self.acpi else ()),
        ]  # fmt: skip

    def _nodes(self, memory: int) -> list[str]:
        """Return QEMU's arguments for the nodes of `memory` bytes; the last has a disk's, too."""
        if self.nodes == 1:
            return []
        share = self.memory // self.nodes
        arguments = []
        for node in range(self.nodes):
            size = share if node < self.nodes - 1 else memory - share * node
            cpus = f"cpus=0-{self.cpus - 1}," if node == 0 else ""
            arguments += [
                "-object", f"memory-backend-ram,id=node{node},size={size >> 20}M",
                "-numa", f"node,nodeid={node},{cpus}memdev=node{node}",
            ]  # fmt: skip
        return arguments

    def _command(self, scratch: Path, log: Path, results: Path) -> list[str]:
        initrd = scratch / "initrd"
        members = {"/init": self.init, **self.files}
        cell = {"/cell/commands": "".join(f"{c}\n" for c in self.commands).encode()}
        if self.disk and self.mounted:
            cell["/cell/mount-disk"] = b""
        if self.timing == "identical":
            cell["/cell/settle"] = b""
        initrd.write_bytes(
            # The kernel looks for tables in the first archive only.
            (pptt.archive(self.machine, self.cpus) if self.acpi else b"")
            + cpio.console_archive()
            + cpio.archive({name: path.read_bytes() for name, path in members.items()})
            + cpio.archive(cell)
        )
        return [
            QEMU, *self._board(),
            "-kernel", str(self.image),
            "-initrd", str(initrd),
            "-append", self.command_line(),
            "-serial", f"file:{log}",
            "-device", "virtio-serial-device",
            "-chardev", f"file,id=results,path={results}",
            "-device", "virtserialport,chardev=results,name=results",
            *([] if self.acpi else self._device_tree(scratch)),
        ]  # fmt: skip

    def _device_tree(self, scratch: Path) -> list[str]:
        """Write the device tree; return QEMU's arguments for it and the disk it names."""
        tree = scratch / "machine.dtb"
        disk = (_RAM_BASE + self.memory, self.disk.stat().st_size) if self.disk else None
        write_device_tree([QEMU, *self._board()], self.machine, self.cpus, disk, tree)
        loader = f"loader,file={self.disk},addr={disk[0]:#x},force-raw=on" if disk else ""
        return ["-dtb", str(tree), *(["-device", loader] if disk else [])]


@functools.lru_cache(maxsize=256)
def _digest(path: Path) -> str:
    """Return a file's digest; the files of a run do not change while it lasts."""
    return digest_file(path)


def recipe_key(identity: Mapping[str, Any]) -> str:
    """Return the name under which the outcome of a guest with this identity is kept."""
    return digest(identity)


def _result(line: str, log: Path) -> dict[str, Any]:
    try:
        result = json.loads(line)
    except ValueError:
        result = None
    if not isinstance(result, dict):
        raise GuestError(f"the guest sent a line that is no result: {line[:80]!r}", _end(log))
    return result


def _join(lines: list[dict[str, Any]], regions: list[dict[str, Any]], log: Path) -> None:
    """Add to each line the metrics of its regions: the next ones, in the order of markers."""
    named = sum(len(line.get("regions", [])) for line in lines)
    if named != len(regions):
        raise GuestError(
            f"the PMU counted {len(regions)} regions where the guest's programs name {named}",
            _end(log),
        )
    following = iter(regions)
    for line in lines:
        for _ in line.get("regions", []):
            counted, missing = region_metrics(next(following))
            metrics = line.setdefault("metrics", {})
            for name, value in counted.items():
                metrics[name] = metrics.get(name, 0) + value
            line.setdefault("unavailable", {}).update(missing)


def splats_in(log: Iterable[str]) -> list[str]:
    """Return the lines of a kernel's log with which it complains of itself."""
    return [line.strip() for line in log if any(mark in line for mark in _SPLATS)]


def _check_splats(log: Path) -> None:
    if splats := splats_in(log.read_text(errors="replace").splitlines()):
        raise GuestError(f"the guest's kernel complained: {splats[0]}", _end(log))


def _checked(text: str, log: Path, complaint: str) -> list[Done]:
    """Return what the commands of a guest did that ran to its end; GuestError for any other."""
    if complaint:
        raise GuestError(f"the guest {complaint}", _end(log))
    commands: list[Done] = []
    lines: list[str] = []
    for line in text.splitlines():
        if match := _COMMAND_ENDED.fullmatch(line):
            commands.append(Done(int(match[1]), tuple(lines)))
            lines = []
        elif _ALL_ENDED.fullmatch(line):
            return commands
        else:
            lines.append(line)
    raise GuestError("the guest ended before its commands did", _end(log))


def _end(log: Path) -> list[str]:
    return log.read_text(errors="replace").splitlines()[-_LOG_LINES:]
