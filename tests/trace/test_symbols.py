# SPDX-License-Identifier: GPL-2.0
"""Names of places: from the file, from a debug file, from a server, from a JIT's map."""

import os
import shutil
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from firsttouch.trace import debug_files
from firsttouch.trace.debug_files import Servers
from firsttouch.trace.sites import Location
from firsttouch.trace.spaces import Place
from firsttouch.trace.symbols import Symbols
from tests.conftest import Firsttouch
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
        symbols = table.get_symbol_by_name(function)
        assert symbols
        symbol = symbols[0]
        for segment in elf.iter_segments("PT_LOAD"):
            start = symbol["st_value"] - segment["p_vaddr"]
            if 0 <= start < segment["p_filesz"]:
                return int(start + segment["p_offset"])
    raise AssertionError(function)


def locate(symbols: Symbols, place: Place) -> Location:
    """Return what is known of one place."""
    return symbols.locate([place])[place]


def _stripped(program: Path, folder: Path) -> tuple[Path, Path, str]:
    """Return the program without debug information, that information, and the build ID."""
    debug, bare = folder / "known.debug", folder / "known"
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    subprocess.run(["objcopy", "--strip-all", program, bare], check=True)
    return bare, debug, build_id_of(bare)


def build_id_of(program: Path) -> str:
    notes = subprocess.run(["readelf", "-n", program], capture_output=True, text=True, check=True)
    (build_id,) = (line.split()[-1] for line in notes.stdout.splitlines() if "Build ID" in line)
    return build_id


def _check(location: Location) -> None:
    assert location.function == "write_all"
    # The function's own line is two above its loop.
    assert location.line in range(line_of("write apart") - 3, line_of("write apart") + 1)
    assert location.file.endswith("tests/trace/known.c")


@pytest.mark.parametrize("dwarf", [4, 5])
def test_lines_come_from_the_file_itself(compile_c: Compile, dwarf: int) -> None:
    program = compile_c("known.c", f"-gdwarf-{dwarf}")
    _check(locate(Symbols(), Place(str(program), offset_of(program, "write_all"), 0)))


def test_names_come_without_binutils_and_what_the_lines_need_is_said(
    compile_c: Compile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = compile_c("known.c")
    place = Place(str(program), offset_of(program, "write_all"), 0)
    monkeypatch.setenv("PATH", str(tmp_path))
    symbols = Symbols()
    location = locate(symbols, place)
    assert (location.function, location.line) == ("write_all", 0)
    (trouble,) = symbols.troubles()
    assert trouble.startswith(str(program)) and trouble.endswith("install binutils")
    # One that is there and fails.
    (tmp_path / "addr2line").symlink_to("/bin/false")
    symbols = Symbols()
    assert locate(symbols, place) == location
    (trouble,) = symbols.troubles()
    assert trouble == f"{program} has debug information that addr2line cannot read"


def test_lines_come_from_a_debug_file_by_its_build_id(compile_c: Compile, tmp_path: Path) -> None:
    program = compile_c("known.c", "-Wl,--build-id")
    offset = offset_of(program, "write_all")
    bare, debug, build_id = _stripped(program, tmp_path)
    file = tmp_path / "usr/lib/debug/.build-id" / build_id[:2] / f"{build_id[2:]}.debug"
    file.parent.mkdir(parents=True)
    shutil.copy(debug, file)
    place = Place(f"/{bare.name}", offset, 0)
    assert locate(Symbols(tmp_path), place).function == "write_all"
    _check(locate(Symbols(tmp_path), place))


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder, and the address of the debuginfod server of what is in it."""
    folder = tmp_path / "server"
    folder.mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["debuginfod", "-F", "-t", "1", "-d", ":memory:", "-p", str(port), str(folder)]
    with subprocess.Popen(
        command, env=_without_servers(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        yield folder, f"http://127.0.0.1:{port}"
        server.terminate()


def _without_servers() -> dict[str, str]:
    """Return the environment of a server that asks no other."""
    return {name: value for name, value in os.environ.items() if name != "DEBUGINFOD_URLS"}


def _wait_for(address: str) -> None:
    """Wait until the server, which looks at its folder once a second, has a file."""
    deadline = time.monotonic() + 60
    while True:
        try:
            with urllib.request.urlopen(address):
                return
        except OSError:
            assert time.monotonic() < deadline, f"no answer from {address}"
            time.sleep(0.2)


def test_lines_come_from_a_debuginfod_server(
    compile_c: Compile,
    tmp_path: Path,
    served: tuple[Path, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder, address = served
    program = compile_c("known.c", "-Wl,--build-id")
    offset = offset_of(program, "write_all")
    bare, debug, build_id = _stripped(program, tmp_path)
    place = Place(f"/{bare.name}", offset, 0)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "bin").mkdir()
    for tool in ("debuginfod-find", "addr2line"):
        (tmp_path / "bin" / tool).symlink_to(f"/usr/bin/{tool}")
    shutil.move(debug, folder / "known.debug")
    _wait_for(f"{address}/buildid/{build_id}/debuginfo")
    monkeypatch.delenv("DEBUGINFOD_URLS", raising=False)
    assert locate(Symbols(tmp_path, servers=Servers(print)), place) == Location(place.path, offset)
    monkeypatch.setenv("DEBUGINFOD_URLS", address)
    monkeypatch.setenv("DEBUGINFOD_CACHE_PATH", str(tmp_path / "cache"))
    said: list[str] = []
    assert locate(Symbols(tmp_path), place).line == 0
    _check(locate(Symbols(tmp_path, servers=Servers(said.append)), place))
    assert said == ["Asking debuginfod for the debug information of known"]


def test_servers_are_asked_for_what_has_doubles_alone_and_not_after_one_was_silent(
    compile_c: Compile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = compile_c("known.c", "-Wl,--build-id")
    _stripped(program, tmp_path)
    shutil.copy(tmp_path / "known", tmp_path / "other")
    monkeypatch.setattr(debug_files, "_PATIENCE", 1)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("DEBUGINFOD_CACHE_PATH", str(tmp_path / "cache"))
    said: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("DEBUGINFOD_URLS", f"http://127.0.0.1:{silent.getsockname()[1]}")
        symbols = Symbols(tmp_path, servers=Servers(said.append))
        symbols.function(Place("/known", 0, 0))
        assert not said
        places = [Place("/known", 0, 0), Place("/other", 0, 0), Place("", 0, 0)]
        symbols.demangle(places)
        assert not said
        symbols.locate(places)
    assert said == [
        "Asking debuginfod for the debug information of known",
        "It gave no answer in 1 s: going on without it (DEBUGINFOD_URLS).",
    ]


def test_no_server_is_asked_for_a_library_that_has_faults_and_no_doubles(
    firsttouch: Firsttouch, tmp_path: Path
) -> None:
    """The flame graph shows its functions by the symbols that it has."""
    (tmp_path / "fill.c").write_text(
        "void fill(char *p, long n) { for (long i = 0; i < n; i += 4096) p[i] = 1; }\n"
    )
    (tmp_path / "main.c").write_text(
        "#include <stdlib.h>\nvoid fill(char *, long);\n"
        "volatile char pages[1 << 16];\n"
        "int main(void) {\n"
        "  for (int i = 0; i < 1 << 16; i += 4096) pages[i] += 1;\n"
        "  fill(aligned_alloc(4096, 1 << 20), 1 << 20);\n}\n"
    )
    compiler = ["gcc", "-O1", "-fno-omit-frame-pointer", "-Wl,--build-id"]
    library, program = tmp_path / "libfill.so", tmp_path / "main"
    subprocess.run([*compiler, "-shared", "-fPIC", "-o", library, tmp_path / "fill.c"], check=True)
    subprocess.run([*compiler, "-o", program, tmp_path / "main.c", library], check=True)
    build_id = build_id_of(library)
    asked: list[str] = []

    class Server(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        done = firsttouch(
            "trace", "--out", "out", "--", program, no_proxy="127.0.0.1",
            DEBUGINFOD_URLS=f"http://127.0.0.1:{server.server_port}",
            DEBUGINFOD_CACHE_PATH=str(tmp_path / "cache"),
        )  # fmt: skip
        server.shutdown()
    assert done.returncode == 0, done.stderr
    assert ">fill" in (tmp_path / "out/trace.html").read_text()
    assert any(build_id_of(program) in path for path in asked)
    assert not [path for path in asked if build_id in path]


def test_jit_code_has_the_names_of_perfs_map(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp/perf-42.map").write_text(
        "1000 20 LazyCompile:~probe table.js:3\nnot a line\n2000 10 other\n"
    )
    symbols = Symbols(tmp_path, numbers={44: 42})
    assert symbols.function(Place("", 0x1010, 42)) == "LazyCompile:~probe table.js:3"
    assert symbols.function(Place("", 0x1020, 42)) == ""
    assert symbols.function(Place("", 0x1010, 43)) == ""
    assert symbols.function(Place("", 0x2000, 44)) == "other"


def test_names_of_cpp_are_decoded(tmp_path: Path) -> None:
    program = tmp_path / "program"
    source = "struct table { void probe(int); }; void table::probe(int) {} int main() {}"
    subprocess.run(["g++", "-x", "c++", "-o", program, "-"], input=source, text=True, check=True)
    place = Place(str(program), offset_of(program, "_ZN5table5probeEi"), 0)
    symbols = Symbols()
    symbols.demangle([place])
    assert symbols.function(place) == "table::probe"


def test_what_is_no_program_has_no_names(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("text")
    for path in ("/text", "/missing", "/"):
        assert locate(Symbols(tmp_path), Place(path, 16, 0)) == Location(path, 16)
