# SPDX-License-Identifier: GPL-2.0
"""Names of places: from the file, from a debug file, from a server, from a JIT's map."""

import shutil
import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from firsttouch.trace.mapped_files import MappedFiles
from firsttouch.trace.sites import Location
from firsttouch.trace.spaces import Place
from firsttouch.trace.symbols import Symbols
from tests.trace.conftest import Compile
from tests.trace.test_known import line_of

pytestmark = pytest.mark.long

_LLVM = Path("/usr/lib/llvm-22/bin")


def offset_of(program: Path, function: str) -> int:
    """Return the offset in a file of the first instruction of a function."""
    with program.open("rb") as file:
        elf = ELFFile(file)
        table = elf.get_section_by_name(".symtab")
        assert isinstance(table, SymbolTableSection)
        symbols = table.get_symbol_by_name(function) or []
        return next(elf.address_offsets(symbols[0]["st_value"]))


def locate(symbols: Symbols, place: Place) -> Location:
    """Return what is known of one place."""
    return symbols.locate([place])[place]


def _stripped(program: Path, folder: Path) -> tuple[Path, Path, str]:
    """Return the program without debug information, that information, and the build ID."""
    debug, bare = folder / "known.debug", folder / "known"
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    subprocess.run(["objcopy", "--strip-all", program, bare], check=True)
    notes = subprocess.run(["readelf", "-n", bare], capture_output=True, text=True, check=True)
    (build_id,) = (line.split()[-1] for line in notes.stdout.splitlines() if "Build ID" in line)
    return bare, debug, build_id


def _check(location: Location) -> None:
    assert location.function == "write_all"
    # The function's own line is two above its loop.
    assert location.line in range(line_of("write apart") - 3, line_of("write apart") + 1)
    assert location.file.endswith("tests/trace/known.c")


@pytest.mark.parametrize("dwarf", [4, 5])
def test_lines_come_from_the_file_itself(compile_c: Compile, dwarf: int) -> None:
    program = compile_c("known.c", f"-gdwarf-{dwarf}")
    _check(locate(Symbols(MappedFiles()), Place(str(program), offset_of(program, "write_all"), 0)))


def test_lines_come_from_a_debug_file_by_its_build_id(compile_c: Compile, tmp_path: Path) -> None:
    program = compile_c("known.c", "-Wl,--build-id")
    offset = offset_of(program, "write_all")
    bare, debug, build_id = _stripped(program, tmp_path)
    file = tmp_path / "usr/lib/debug/.build-id" / build_id[:2] / f"{build_id[2:]}.debug"
    file.parent.mkdir(parents=True)
    shutil.copy(debug, file)
    place = Place(f"/{bare.name}", offset, 0)
    assert locate(Symbols(MappedFiles(tmp_path)), place).function == "write_all"
    _check(locate(Symbols(MappedFiles(tmp_path)), place))


def test_jit_code_has_the_names_of_perfs_map(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp/perf-42.map").write_text(
        "1000 20 LazyCompile:~probe table.js:3\nnot a line\n2000 10 other\n"
    )
    symbols = Symbols(MappedFiles(tmp_path))
    assert symbols.function(Place("", 0x1010, 42)) == "LazyCompile:~probe table.js:3"
    assert symbols.function(Place("", 0x1020, 42)) == ""
    # In a container its process has another number.
    assert symbols.function(Place("", 0x2000, 44)) == "other"


def test_names_of_cpp_are_decoded(tmp_path: Path) -> None:
    program = tmp_path / "program"
    source = "struct table { void probe(int); }; void table::probe(int) {} int main() {}"
    subprocess.run(["g++", "-x", "c++", "-o", program, "-"], input=source, text=True, check=True)
    place = Place(str(program), offset_of(program, "_ZN5table5probeEi"), 0)
    symbols = Symbols(MappedFiles())
    symbols.demangle([place])
    assert symbols.function(place) == "table::probe"


def test_what_is_no_program_has_no_names(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("text")
    for path in ("/text", "/missing", "/"):
        assert locate(Symbols(MappedFiles(tmp_path)), Place(path, 16, 0)) == Location(path, 16)
