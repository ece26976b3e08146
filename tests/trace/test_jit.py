# SPDX-License-Identifier: GPL-2.0
"""Real JIT compilers: the trace names what they compiled by the map that they write for perf."""

import subprocess
from pathlib import Path

import pytest

from firsttouch.trace.sites import FILE_NAME, Site, read_trace
from tests.conftest import Firsttouch
from tests.trace.conftest import FOLDER, sentences_of

pytestmark = pytest.mark.long

# Pages that the programs read and then write. An allocator's header moves one into another.
_PAGES = 331
_NODE = ("node", "--perf-basic-prof", str(FOLDER / "probe.js"))
# The JVM writes its map at its end.
_JAVA = ("java", "-XX:+UnlockDiagnosticVMOptions", "-XX:+DumpPerfMapAtExit")


def _top(firsttouch: Firsttouch, *command: str) -> tuple[Site, str]:
    """Return the place with most doubles, and the sentences; remove the compiler's map."""
    done = firsttouch("trace", "--", "sh", "-c", 'echo $$; exec "$@"', "sh", *command)
    assert done.returncode == 0, done.stderr
    Path(f"/tmp/perf-{int(done.stdout)}.map").unlink(missing_ok=True)
    trace = read_trace(firsttouch.directory / "out" / FILE_NAME)
    assert trace.lost == 0
    return trace.sites[0], sentences_of(firsttouch)


def _check(site: Site) -> None:
    assert site.read.object == site.write.object == "[JIT]"
    assert site.read.function == site.write.function
    assert site.memory == "anonymous"
    assert _PAGES - 1 <= site.doubles <= _PAGES


def test_what_node_compiled_is_named(firsttouch: Firsttouch) -> None:
    site, _ = _top(firsttouch, *_NODE)
    _check(site)
    # The asterisk says that it was optimized.
    assert site.read.function.startswith("JS:*probe ")


def test_what_java_compiled_is_named(firsttouch: Firsttouch, tmp_path: Path) -> None:
    subprocess.run(["javac", "-nowarn", "-d", tmp_path, FOLDER / "Probe.java"], check=True)
    site, _ = _top(firsttouch, *_JAVA, "-cp", str(tmp_path), "Probe")
    _check(site)
    assert site.read.function.startswith("void Probe.probe(")


def test_a_compiler_that_wrote_no_map_is_said_with_what_to_do(firsttouch: Firsttouch) -> None:
    site, said = _top(firsttouch, "node", str(FOLDER / "probe.js"))
    assert (site.read.object, site.read.function) == ("[JIT]", "")
    assert "in JIT-compiled code without symbols" in said
    assert "node --perf-basic-prof" in said
