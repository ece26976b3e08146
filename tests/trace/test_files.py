# SPDX-License-Identifier: GPL-2.0
"""Files of a traced program that are damaged, replaced, or no files: names go, the trace stays."""

from __future__ import annotations

import os
import random
import shutil
import struct
import subprocess
import time
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from firsttouch.errors import UserError
from firsttouch.trace.doubles import Finder
from firsttouch.trace.mapped_files import MappedFiles
from firsttouch.trace.reading import read_recording
from firsttouch.trace.records import Recording
from firsttouch.trace.sites import FILE_NAME, read_trace
from firsttouch.trace.spaces import Place
from firsttouch.trace.symbols import Symbols
from tests.conftest import Firsttouch
from tests.trace.conftest import Compile, run_trace
from tests.trace.test_symbols import locate, offset_of

pytestmark = pytest.mark.long

_ZSTD = 2
_FAULTS_FOR_EVER = r"""
#include <sys/mman.h>
__attribute__((noinline)) void touch(volatile char *page) { *page = 1; }
int main(void)
{
    for (;;) {
        char *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        touch(page);
        munmap(page, 4096);
    }
}
"""


def test_a_compression_that_is_not_supported_costs_the_lines_alone(
    compile_c: Compile, tmp_path: Path
) -> None:
    program = compile_c("known.c", "-gz=zlib")
    data = bytearray(program.read_bytes())
    with program.open("rb") as file:
        for section in ELFFile(file).iter_sections():
            if section.compressed:
                data[section["sh_offset"]] = _ZSTD
    (tmp_path / "known").write_bytes(data)
    symbols = Symbols(MappedFiles(tmp_path))
    place = Place("/known", offset_of(program, "write_all"), 0)
    location = locate(symbols, place)
    assert (location.function, location.line) == ("write_all", 0)


def test_any_damaged_file_is_read_without_an_exception(compile_c: Compile, tmp_path: Path) -> None:
    program = compile_c("known.c")
    data = program.read_bytes()
    place = Place("/known", offset_of(program, "write_all"), 0)
    seed = random.randrange(1 << 30)
    print("seed", seed)
    chance = random.Random(seed)
    for _ in range(60):
        damaged = bytearray(data)
        for _ in range(chance.randrange(1, 30)):
            # Half of them in the ELF header, or in the headers of sections at the end.
            limit = chance.choice((64, len(data)))
            at = chance.choice((chance.randrange(limit), len(data) - chance.randrange(1, 2400)))
            damaged[at] = chance.choice((0, 255, chance.randrange(256)))
        (tmp_path / "known").write_bytes(damaged)
        locate(Symbols(MappedFiles(tmp_path)), place)


_START = struct.pack("<IHHIIIIQQ", 100, 0, 40, 32, 62, 4096, 1, 0, 4096)
_DAMAGED = {
    "a page of 3 bytes": _START.replace(struct.pack("<I", 4096), struct.pack("<I", 3), 1),
    "a process that stopped": _START + struct.pack("<IHHiIQQQQQ", 104, 0, 56, 0x137F, *[0] * 6),
}


@pytest.mark.parametrize("what", _DAMAGED)
def test_a_recording_with_an_impossible_value_is_refused(tmp_path: Path, what: str) -> None:
    (tmp_path / "trace.data").write_bytes(b"FTTRACE3" + _DAMAGED[what])
    with pytest.raises(UserError, match="is damaged: record the program again"):
        read_recording(tmp_path / "trace.data")


def test_devices_fifos_and_names_too_long_are_not_read(tmp_path: Path) -> None:
    """A FIFO would wait for a writer, a device for ever."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "zero").symlink_to("/dev/zero")
    for name in ("fifo", "zero", "x" * 300):
        place = Place(f"/{name}", 0, 0)
        assert MappedFiles(tmp_path).at(place) is None
        assert locate(Symbols(MappedFiles(tmp_path)), place).function == ""


@pytest.mark.parametrize("style", ["sha1", "none"])
def test_a_program_that_was_replaced_gives_neither_code_nor_names(
    firsttouch: Firsttouch, compile_c: Compile, tmp_path: Path, style: str
) -> None:
    program = tmp_path / "program"
    shutil.copy(compile_c("known.c", f"-Wl,--build-id={style}"), program)
    done = firsttouch("trace", "--", program)
    assert done.returncode == 0, done.stderr
    # Made before the other is removed, so that it has another inode.
    shutil.copy(compile_c("jit.c", f"-Wl,--build-id={style}"), tmp_path / "next")
    (tmp_path / "next").replace(program)
    after = read_recording(tmp_path / "out/trace.data").trace
    assert not [site for site in after.sites if site.read.object == str(program)
                and (site.read.function or site.read.line)]  # fmt: skip
    # Of copies, as on the disk of a guest, only a build ID tells.
    copies = MappedFiles(copies=True)
    copied = Finder(Recording(tmp_path / "out/trace.data"), copies).run()
    place = next(pair.read for pair in copied.pairs if pair.read.path == str(program))
    assert (copies.at(place) is None) == (style == "sha1")


def test_a_running_program_that_was_replaced_gives_no_names(
    firsttouch: Firsttouch, tmp_path: Path
) -> None:
    program = tmp_path / "program"
    for name in ("program", "other"):
        subprocess.run(
            ["gcc", "-O1", "-x", "c", "-", "-Wl,--build-id=sha1", "-o", tmp_path / name],
            input=_FAULTS_FOR_EVER.replace("touch", f"touch_{name}"), text=True, check=True,
        )  # fmt: skip
    with subprocess.Popen([program]) as process:
        done = firsttouch("trace", "--pid", str(process.pid), "--seconds", "1")
        process.kill()
    assert done.returncode == 0, done.stderr
    traced = read_recording(tmp_path / "out/trace.data").trace
    assert any(fault.place.function == "touch_program" for fault in traced.fault_places)
    (tmp_path / "other").replace(program)
    traced = read_recording(tmp_path / "out/trace.data").trace
    assert not any(fault.place.function.startswith("touch") for fault in traced.fault_places)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_a_jit_compilers_map_is_that_of_the_container(
    firsttouch: Firsttouch, compile_c: Compile, tmp_path: Path
) -> None:
    """It has another /tmp, and its process another number there."""
    (tmp_path / "tmp").mkdir()
    shutil.copy(compile_c("jit.c", "-DFOR_EVER=1"), tmp_path / "tmp/jit")
    script = f"mount --bind {tmp_path}/tmp /tmp && exec /tmp/jit"
    command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "/tmp/perf-1.map\n"
        (pid,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        done = firsttouch("trace", "--pid", pid, "--seconds", "1")
        process.kill()
    assert done.returncode == 0, done.stderr
    site = read_trace(tmp_path / "out" / FILE_NAME).sites[0]
    assert (site.read.object, site.read.function) == ("[JIT]", "compiled table.js:3")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_a_process_in_another_mount_namespace_is_named_by_its_own_files(
    firsttouch: Firsttouch, tmp_path: Path
) -> None:
    """As in a container: elsewhere the same path is another program."""
    inside = tmp_path / "inside"
    inside.mkdir()
    for name, path in (("container", tmp_path / "program"), ("host", inside / "program")):
        source = _FAULTS_FOR_EVER.replace("touch", f"touch_{name}")
        subprocess.run(
            ["gcc", "-O1", "-x", "c", "-", "-Wl,--build-id=none", "-o", path],
            input=source, text=True, check=True,
        )  # fmt: skip
    script = "mount -t tmpfs none inside && cp program inside && exec inside/program"
    with subprocess.Popen(["unshare", "--mount", "sh", "-c", script], cwd=tmp_path) as process:
        while Path(f"/proc/{process.pid}/exe").readlink().name != "program":
            time.sleep(0.05)
        done = firsttouch("trace", "--pid", str(process.pid), "--seconds", "1")
        process.kill()
    assert done.returncode == 0, done.stderr
    trace = read_trace(tmp_path / "out" / FILE_NAME)
    named = [place.place.function for place in trace.fault_places]
    assert "touch_container" in named


def test_a_path_that_is_not_utf_8_is_traced_and_drawn(
    firsttouch: Firsttouch, compile_c: Compile, tmp_path: Path
) -> None:
    program = tmp_path / os.fsdecode(b"caf\xe9") / "known"
    program.parent.mkdir()
    shutil.copy(compile_c("known.c"), program)
    trace = run_trace(firsttouch, "--", program, os.fsdecode(b"\xff"))
    assert any(site.read.object == str(program) for site in trace.sites)
