# SPDX-License-Identifier: GPL-2.0
"""Programs about which a trace was wrong once: tests/data/probes."""

import os
import subprocess
from pathlib import Path

import pytest

from firsttouch.trace.advice import advise
from firsttouch.trace.reading import read_recording
from firsttouch.trace.remedies import KEEP
from firsttouch.trace.sites import Trace

PROBES = Path(__file__).parents[1] / "data/probes"

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root sees system calls"),
]


def traced(recorder: Path, folder: Path, probe: str, *words: str) -> Trace:
    """Return the trace of a probe, which gets a cached file of 33 MiB."""
    program, data, file = (folder / name for name in (probe, "trace.data", "file"))
    file.write_bytes(bytes(33 << 20))
    source = PROBES / f"{probe}.c"
    subprocess.run(["gcc", "-g", "-O2", "-w", "-o", program, source], check=True)
    subprocess.run(
        [recorder, "-c", "-o", data, "--", program, file, *words],
        check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    return read_recording(data).trace


def test_no_read_is_kept_over_a_new_mapping(recorder: Path, tmp_path: Path) -> None:
    """1,500 pages are read, unmapped, mapped by fault-around and written."""
    assert traced(recorder, tmp_path, "remap").doubles <= 100


@pytest.mark.parametrize(
    ("probe", "nowhere", "written"), [("nulls", 1000, 300), ("denied", 2048 + 1024 + 256, 2048)]
)
def test_a_handled_sigsegv_brings_no_memory(
    recorder: Path, tmp_path: Path, probe: str, nowhere: int, written: int
) -> None:
    trace = traced(recorder, tmp_path, probe)
    assert trace.fault_kinds["no memory"] == nowhere
    assert trace.fault_kinds["first write"] == pytest.approx(written, abs=40)
    assert not any(advice.remedy.saved > written for advice in advise(trace))


@pytest.mark.parametrize(("words", "share"), [((), 0), (("malloc",), 5 / 6)])
def test_variables_of_malloc_are_for_its_own_heap(
    recorder: Path, tmp_path: Path, words: tuple[str, ...], share: float
) -> None:
    trace = traced(recorder, tmp_path, "brk", *words)
    (keep,) = (remedy for remedy in trace.remedies if remedy.name == KEEP)
    assert trace.fault_kinds["again"] > 20_000
    assert keep.saved == pytest.approx(share * trace.faults, rel=0.02, abs=8)
    assert any("glibc" in advice.how for advice in advise(trace)) is bool(words)


def test_code_without_names_is_counted_before_the_cut(recorder: Path, tmp_path: Path) -> None:
    trace = traced(recorder, tmp_path, "jitcode")
    assert trace.nameless >= 4000
    assert sum(p.faults for p in trace.fault_places if p.place.object == "[JIT]") >= 3900


@pytest.mark.parametrize("words", [(), ("alone",)])
def test_faults_during_calls_of_another_thread_are_counted(
    recorder: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    contended = traced(recorder, tmp_path, "locked", *words).contended
    assert contended == 0 if words else contended > 20
