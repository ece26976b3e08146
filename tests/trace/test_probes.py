# SPDX-License-Identifier: GPL-2.0
"""Programs about which a trace was wrong once: tests/data/probes."""

import os
import subprocess
from pathlib import Path

import pytest

from firsttouch.trace.advice import advise
from firsttouch.trace.reading import read_recording
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


def test_null_pointers_are_no_memory(recorder: Path, tmp_path: Path) -> None:
    trace = traced(recorder, tmp_path, "nulls")
    assert trace.fault_kinds["no memory"] == 1000
    assert not any(advice.remedy.saved > 400 for advice in advise(trace))


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
