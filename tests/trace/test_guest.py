# SPDX-License-Identifier: GPL-2.0
"""The recorder on arm64: fault for fault what QEMU itself logs, and all known doubles."""

import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from firsttouch.building.host_tools import cross_compile
from firsttouch.building.kernel import kernel_of
from firsttouch.building.programs import INIT, RECORDER
from firsttouch.building.source import KernelSource
from firsttouch.catalog.arms import load_arm
from firsttouch.catalog.kernels import Port
from firsttouch.catalog.machines import load_machine
from firsttouch.progress import Reporter
from firsttouch.trace.events import Fault
from firsttouch.trace.reading import Reading, read_recording
from firsttouch.trace.records import Recording
from firsttouch.vm.guest import Guest, port_for
from firsttouch.vm.qemu import RESULTS, command
from firsttouch.vm.supervision import read_channel
from tests.trace.conftest import Compile
from tests.trace.test_kinds import GIVERS, by_function
from tests.trace.test_kinds import KNOWN as KINDS
from tests.trace.test_known import KNOWN, line_of, own_sites

pytestmark = pytest.mark.kernel

# Where the program is linked to, apart from the recorder: pcs tell their faults apart.
_BASE, _SIZE = 0x7000_0000, 0x1000_0000
# In ESR_EL1: the access was a write; the fault was one of permission, so the page was mapped.
_WRITE, _STATUS, _PERMISSION = 1 << 6, 0x3C, 0xC
_EXCEPTION = re.compile(
    r"^Taking exception \d+ \[(?:Data|Prefetch) Abort\] on CPU \d+\n"
    r"\.\.\.from EL0 to EL1\n"
    r"\.\.\.with ESR 0x\w+/0x(\w+)\n(?:\.\.\.with SPSR .*\n)?"
    r"\.\.\.with FAR 0x(\w+)\n\.\.\.with ELR 0x(\w+)",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Abort:
    """An abort that QEMU logged."""

    address: int
    pc: int
    write: bool
    mapped: bool


@dataclass(frozen=True)
class Run:
    """A run of known.c: what QEMU logged of it, and the recording."""

    aborts: list[Abort]
    file: Path
    root: Path

    def read(self) -> Reading:
        return read_recording(self.file, self.root)


def record(image: Path, program: Path, folder: Path, port: Port = "mmio") -> Path:
    """Return the recording of a program in a guest, of which QEMU logs the exceptions."""
    reporter = Reporter()
    guest = Guest(
        image,
        INIT.obtain(reporter),
        load_machine("neoverse-n1"),
        (),
        (
            f"/ftrecord -c -o /tmp/trace.data -- /{program.name}",
            "/ftrecord -x /tmp/trace.data",
        ),
        {"/ftrecord": RECORDER.obtain(reporter), f"/{program.name}": program},
        port=port,
    )
    started = command(guest, folder, folder / "log")
    subprocess.run([*started, "-d", "int", "-D", folder / "exceptions"], check=True, timeout=600)
    done = read_channel((folder / RESULTS).read_text())
    assert done is not None, (folder / "log").read_text()[-2000:]
    assert [result.status for result in done] == [0, 0], (folder / "log").read_text()[-2000:]
    file = folder / "trace.data"
    file.write_bytes(bytes.fromhex(done[1].lines[0]))
    return file


@pytest.fixture(scope="module")
def run(
    images: Callable[[str, bool], Path],
    compile_c: Compile,
    tmp_path_factory: pytest.TempPathFactory,
) -> Run:
    gcc = f"{cross_compile()}gcc"
    program = compile_c(
        "known.c", "-static", f"-Wl,-Ttext-segment={_BASE:#x}", "-fno-pie", "-no-pie", compiler=gcc
    )
    folder = tmp_path_factory.mktemp("guest")
    file = record(images("6.12", False), program, folder)
    aborts = [
        Abort(
            int(far, 16),
            int(elr, 16),
            bool(int(esr, 16) & _WRITE),
            int(esr, 16) & _STATUS == _PERMISSION,
        )
        for esr, far, elr in _EXCEPTION.findall((folder / "exceptions").read_text())
    ]
    aborts_of_program = [abort for abort in aborts if _BASE <= abort.pc < _BASE + _SIZE]
    return Run(aborts_of_program, file, program.parent)


def test_the_recorder_agrees_with_qemu_fault_for_fault(run: Run) -> None:
    recorded = [
        (fault.address, fault.pc, bool(fault.mapped))
        for fault in Recording(run.file).events()
        if isinstance(fault, Fault) and fault.user
    ]
    assert len(recorded) > 1000
    assert recorded == [(abort.address, abort.pc, abort.mapped) for abort in run.aborts]


def test_all_known_doubles_are_found_with_their_kinds_and_lines(run: Run) -> None:
    trace = run.read().trace
    doubles = {
        site.read.line: (site.doubles, site.write.line, site.kind) for site in own_sites(trace)
    }
    assert doubles == {
        line_of(f"read {mark}"): (pages, line_of(f"write {mark}"), kind)
        for mark, pages, kind in (
            *((mark, pages, "apart") for mark, pages in KNOWN.items()),
            ("load-exclusive", 109, "load-exclusive"),
        )
    } | {line_of("atomic"): (107, line_of("atomic"), "atomic")}
    assert trace.doubles_of(kind="atomic", memory="anonymous") == 107


def test_the_exceptions_own_bits_say_the_same(run: Run) -> None:
    """A double by the instructions is a read and then a write by ESR_EL1, and no other is."""
    reads: dict[int, bool] = {}
    doubles = 0
    for abort in run.aborts:
        page = abort.address >> 12
        doubles += abort.write and abort.mapped and reads.get(page, False)
        reads[page] = not abort.write
    assert run.read().trace.doubles == doubles


def test_each_fault_has_its_kind_on_arm64(
    images: Callable[[str, bool], Path], compile_c: Compile, tmp_path: Path
) -> None:
    kinds = compile_c("kinds.c", "-static", compiler=f"{cross_compile()}gcc")
    trace = read_recording(record(images("6.12", False), kinds, tmp_path), kinds.parent).trace
    counted = by_function(trace)
    # Whether the child or its parent writes first to the page of the stack is chance.
    assert counted["child"].pop("after fork") - KINDS["child"]["after fork"] in (0, 1)
    assert {name: counted[name] for name in KINDS} == {**KINDS, "child": {}}
    # It adds to a variable, on a page that the fork shared.
    assert 1 <= counted["file"].pop("file") <= 131 and counted["file"] == {"after fork": 1}
    assert sum(trace.fault_kinds.values()) == trace.faults and trace.lost == 0


def test_system_calls_are_seen_on_arm64(
    sources: Callable[[str], KernelSource], compile_c: Compile, tmp_path: Path, reporter: Reporter
) -> None:
    """By Debian's kernel, which has the tracepoints."""
    kernel = load_arm("debian").kernel
    image = kernel_of(kernel, sources("6.12")).obtain(reporter)
    kinds = compile_c("kinds.c", "-static", compiler=f"{cross_compile()}gcc")
    file = record(image, kinds, tmp_path, port_for(kernel))
    trace = read_recording(file, kinds.parent).trace
    counted = by_function(trace)
    assert {name: counted[name] for name in GIVERS} == {name: KINDS[name] for name in GIVERS}
    assert {
        place.place.function: (place.given_back[0], place.given_back[2], place.faults)
        for place in trace.fault_places
        if place.given_back
    } == {name: (call, "main", KINDS[name]["again"]) for name, call in GIVERS.items()}
