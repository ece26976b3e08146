# SPDX-License-Identifier: GPL-2.0
"""What a recorder could disturb, and what could disturb it: nothing is lost, nothing is left."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from firsttouch.building.programs import Program
from firsttouch.errors import UserError
from firsttouch.progress import Reporter
from firsttouch.trace.events import Fault
from firsttouch.trace.reading import read_recording
from firsttouch.trace.recording import Target, record
from firsttouch.trace.records import Recording
from firsttouch.trace.sites import FILE_NAME, read_trace
from tests.conftest import Firsttouch
from tests.trace.conftest import NOBODY, PAGES, Compile, doubles_of, make_public, run_trace

pytestmark = pytest.mark.long

_THREADS = 8


@pytest.mark.parametrize("what", ["threads", "fork", "exec"])
def test_threads_children_and_executed_programs_are_traced(
    firsttouch: Firsttouch, trouble: Path, what: str
) -> None:
    trace = run_trace(firsttouch, "--", trouble, what)
    assert doubles_of(trace) == PAGES * _THREADS
    assert trace.lost == 0


@pytest.mark.parametrize("build_id", ["sha1", "none"])
def test_other_code_at_the_same_pc_is_read_after_exec(
    firsttouch: Firsttouch, compile_c: Compile, build_id: str
) -> None:
    """It is read from the file that was mapped, by its build ID or its inode."""
    section = "-Wl,--section-start=.touch=0x500000"
    layout = ("-no-pie", "-fno-pie", section, f"-Wl,--build-id={build_id}")
    writes, reads = compile_c("exec.c", "-DWRITES", *layout), compile_c("exec.c", *layout)
    trace = run_trace(firsttouch, "--", writes, reads, writes, reads)
    assert sum(site.doubles for site in trace.sites if site.read.function == "touch") == 200


@pytest.mark.parametrize(("words", "status"), [(("exit", "7"), 7), (("signal", "15"), 143)])
def test_the_exit_status_is_the_programs(
    firsttouch: Firsttouch, trouble: Path, words: tuple[str, str], status: int
) -> None:
    assert firsttouch("trace", "--", trouble, *words).returncode == status


def test_a_signal_is_passed_on_and_what_was_recorded_is_shown(
    firsttouch: Firsttouch, trouble: Path
) -> None:
    with firsttouch.start("trace", "--", trouble, "run") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "touched\n"
        process.send_signal(signal.SIGTERM)
        _, printed = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert "ended by signal 15 (Terminated)" in printed
    assert doubles_of(read_trace(firsttouch.directory / "out" / FILE_NAME)) >= PAGES


@pytest.mark.parametrize("killed", ["firsttouch", "recorder"])
def test_killed_it_leaves_no_process_and_a_readable_recording(
    firsttouch: Firsttouch, trouble: Path, killed: str
) -> None:
    with firsttouch.start("trace", "--", trouble, "run") as process:
        assert process.stdout is not None
        for _ in range(20):
            process.stdout.readline()
        (recorder,) = _children(process.pid)
        (program,) = _children(recorder)
        os.kill(process.pid if killed == "firsttouch" else recorder, signal.SIGKILL)
        process.communicate(timeout=60)
    # In both cases by signal 9: firsttouch itself, or the command with the recorder.
    assert process.returncode == (-9 if killed == "firsttouch" else 128 + 9)
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() for pid in (recorder, program)):
        assert time.monotonic() < deadline, "a process was left behind"
        time.sleep(0.05)
    read = read_recording(firsttouch.directory / "out/trace.data")
    assert doubles_of(read.trace) >= PAGES
    assert read.trace.complete == (killed == "firsttouch")


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _recording(recorder: Path, file: Path, *command: str | Path) -> bytes:
    subprocess.run([recorder, "-c", "-o", file, "--", *command], check=True)
    return file.read_bytes()


def test_a_recording_that_is_cut_off_anywhere_is_readable(
    recorder: Path, trouble: Path, tmp_path: Path
) -> None:
    data = _recording(recorder, tmp_path / "whole", trouble, "threads")
    for size in range(0, 48, 7):
        (tmp_path / "cut").write_bytes(data[:size])
        with pytest.raises(UserError, match=r"no trace|nothing was recorded"):
            Recording(tmp_path / "cut")
    counts = []
    for size in range(200, len(data), len(data) // 40 + 1):
        cut = tmp_path / "cut"
        cut.write_bytes(data[:size])
        counts.append(sum(isinstance(e, Fault) for e in Recording(cut).events()))
    assert counts == sorted(counts)
    assert counts[-1] > PAGES


def test_a_recording_with_damaged_bytes_is_read_or_refused_in_a_sentence(
    recorder: Path, trouble: Path, tmp_path: Path
) -> None:
    data = _recording(recorder, tmp_path / "whole", trouble, "fork")
    print("seed", seed := random.randrange(1 << 30))
    chance = random.Random(seed)
    refused = 0
    for _ in range(150):
        damaged = bytearray(data)
        # Sizes, depths of call chains and texts are among the words.
        for _ in range(chance.randrange(1, 40)):
            at = chance.randrange(200, len(data) - 8)
            damaged[at : at + 8] = chance.choice((bytes(8), b"\xff" * 8, chance.randbytes(8)))
        (tmp_path / "damaged").write_bytes(damaged)
        try:
            events = sum(1 for _ in Recording(tmp_path / "damaged").events())
            assert events <= len(data)
        except UserError as error:
            refused += 1
            assert "is damaged: record the program again" in str(error)
    assert refused


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_without_privileges_nothing_is_lost_either(
    recorder: Path, trouble: Path, tmp_path: Path
) -> None:
    public = [make_public(program, tmp_path) for program in (recorder, trouble)]
    file = tmp_path / "trace.data"
    subprocess.run(
        [public[0], "-o", file, "--", public[1], "threads"], user=NOBODY, group=NOBODY, check=True
    )
    read = read_recording(file)
    assert doubles_of(read.trace) == PAGES * _THREADS
    assert read.trace.lost == 0
    assert "in the kernel" not in read.trace.fault_kinds
    assert read.trace.unseen


def test_two_million_faults_are_recorded_in_bounded_memory(
    recorder: Path, compile_c: Compile, tmp_path: Path
) -> None:
    file = tmp_path / "trace.data"
    code = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True);"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    # No memory is touched twice at once, so that the program's own is small.
    traced = compile_c("many.c")
    command = [sys.executable, "-c", code, str(recorder), "-o", str(file), "--", str(traced)]
    done = subprocess.run([*command, "2000000"], capture_output=True, text=True, check=True)
    recording = Recording(file)
    faults = sum(isinstance(event, Fault) for event in recording.events())
    assert recording.ending is not None
    assert faults >= 2_000_000
    assert recording.ending.faults == faults, "some were lost"
    # KiB: the rings take 64 MiB at most.
    assert int(done.stdout) < 100_000


def test_a_command_that_is_too_long_is_said(tmp_path: Path) -> None:
    """Its words have room beside those of firsttouch, and none beside the recorder's."""
    command = ("true", "x" * (1 << 20))
    with pytest.raises(UserError, match=r"\(Argument list too long\): shorten the command"):
        record(Target(command), tmp_path / "trace.data", Reporter())


def test_a_recorder_that_may_not_be_executed_is_named_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As where the store is on a file system that is mounted noexec."""
    (tmp_path / "ftrecord").write_bytes(b"")
    monkeypatch.setattr(Program, "obtain", lambda *_: tmp_path / "ftrecord")
    with pytest.raises(UserError, match=r"\(Permission denied\): .* set XDG_CACHE_HOME"):
        record(Target(("true",)), tmp_path / "trace.data", Reporter())


def test_standard_output_is_the_programs_and_json_is_alone_there(
    firsttouch: Firsttouch, trouble: Path
) -> None:
    done = firsttouch("trace", "--", "echo", "hello")
    assert done.stdout == "hello\n"
    done = firsttouch("trace", "--json", "--", "echo", "hello")
    assert done.stdout == (firsttouch.directory / "out" / FILE_NAME).read_text()
    assert "hello\n" in done.stderr


@pytest.mark.parametrize("what", ["run", "maps"])
def test_a_process_that_runs_is_traced_for_a_time(
    firsttouch: Firsttouch, trouble: Path, what: str
) -> None:
    with subprocess.Popen([trouble, what], stdout=subprocess.DEVNULL) as process:
        try:
            trace = run_trace(firsttouch, "--pid", str(process.pid), "--seconds", "1")
        finally:
            process.kill()
    assert doubles_of(trace) >= PAGES


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--", "no-such", *["x" * 999] * 99), "no-such cannot be run (No such file or directory)"),
        (("--pid", "999999999"), "there is no process 999999999"),
        (("--", "./lost"), "the interpreter that ./lost names is missing: correct its"),
    ],
)
def test_what_cannot_be_traced_is_said_in_one_sentence(
    firsttouch: Firsttouch, tmp_path: Path, words: tuple[str, ...], sentence: str
) -> None:
    (tmp_path / "lost").write_text("#!/no/such/interpreter\n")
    (tmp_path / "lost").chmod(0o755)
    done = firsttouch("trace", *words)
    assert done.returncode == 2
    assert done.stderr.startswith(f"firsttouch: {sentence}"), done.stderr
    assert len(done.stderr.splitlines()) == 1
