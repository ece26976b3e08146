# SPDX-License-Identifier: GPL-2.0
"""What a host forbids or counts otherwise: it is recorded, or said in a sentence."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from firsttouch.errors import UserError
from firsttouch.finder.sites import Trace
from firsttouch.trace.reading import Reading, read_recording
from tests.conftest import Firsttouch
from tests.trace.conftest import NOBODY, PAGES, Compile, doubles_of, make_public

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user"),
]
_PARANOID = "/proc/sys/kernel/perf_event_paranoid"


def _record(*command: str | Path, user: int = NOBODY, check: bool = True) -> None:
    subprocess.run(command, user=user, group=user, extra_groups=(), check=check)


@pytest.mark.parametrize("mode", [0o4755, 0o711], ids=["set-user-ID", "unreadable"])
def test_a_program_that_may_not_be_traced_is_named(
    recorder: Path, trouble: Path, tmp_path: Path, mode: int
) -> None:
    recorder, other = make_public(recorder, tmp_path), make_public(trouble, tmp_path)
    other.chmod(mode)
    file = tmp_path / "trace.data"
    _record(recorder, "-o", file, "--", "sh", "-c", f"{other} threads; {other} fork; true")
    read = read_recording(file)
    assert read.trace.detached == ("trouble",)
    assert read.trace.unseen is None
    assert read.trace.lower_bound
    assert _said(read).count("trouble: the kernel ends tracing where") == 1
    assert "in the kernel" not in _said(read)


def _said(read: Reading) -> str:
    return " ".join(read.sentences)


def test_a_program_that_only_ends_is_not_called_so(
    recorder: Path, trouble: Path, tmp_path: Path
) -> None:
    recorder, other = make_public(recorder, tmp_path), make_public(trouble, tmp_path)
    file = tmp_path / "trace.data"
    _record(recorder, "-o", file, "--", "sh", "-c", f"{other} exit 0; true; sh -c true; true")
    read = read_recording(file)
    assert read.trace.detached == ()


@pytest.mark.parametrize(
    ("paranoid", "user", "words"),
    [
        ("2", 0, "a seccomp filter, such as that of a container, forbids perf events"),
        ("3", NOBODY, "run `sysctl kernel.perf_event_paranoid=2` as root (it is 3)"),
    ],
    ids=["a container", "Debian's default"],
)
def test_who_forbids_it_is_named(
    recorder: Path, compile_c: Compile, tmp_path: Path, paranoid: str, user: int, words: str
) -> None:
    recorder, deny = make_public(recorder, tmp_path), make_public(compile_c("deny.c"), tmp_path)
    file = tmp_path / "trace.data"
    command = shlex.join(map(str, (deny, recorder, "-o", file, "--", "true")))
    _replaced(_PARANOID, paranoid, command, tmp_path, user)
    with pytest.raises(UserError, match="perf") as refused:
        read_recording(file)
    assert words in str(refused.value)


def _replaced(path: str, text: str, command: str, folder: Path, user: int = 0) -> None:
    """Run a command where a file of the kernel has another text."""
    (folder / "text").write_text(text + "\n")
    script = f"mount --bind {folder / 'text'} {path} && exec setpriv --reuid {user} {command}"
    subprocess.run(["unshare", "--mount", "sh", "-c", script], check=False)


def test_numbers_of_cpus_may_have_gaps(recorder: Path, trouble: Path, tmp_path: Path) -> None:
    last = max(os.sched_getaffinity(0))
    file = tmp_path / "trace.data"
    command = f"taskset -c {last} {recorder} -o {file} -- {trouble} threads"
    _replaced("/sys/devices/system/cpu/possible", str(last), command, tmp_path)
    assert doubles_of(read_recording(file).trace) == PAGES * 8


def test_all_of_many_threads_are_traced(firsttouch: Firsttouch, trouble: Path) -> None:
    with subprocess.Popen([trouble, "crowd"], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"touched\n"
            trace = _attach(firsttouch, process.pid)
        finally:
            process.kill()
    # The last thread, behind 4,300 others.
    assert doubles_of(trace) >= PAGES


def _attach(firsttouch: Firsttouch, pid: int) -> Trace:
    """Trace a process with the limit of open files that a login has."""
    command = firsttouch.command("trace", "--pid", str(pid), "--seconds", "1")
    done = subprocess.run(
        ["prlimit", "--nofile=1024:", *command],
        cwd=firsttouch.directory, env=firsttouch.environment(), capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return read_recording(firsttouch.directory / "out/trace.data").trace
