# SPDX-License-Identifier: GPL-2.0
"""What a host forbids or counts otherwise: it is recorded, or said in a sentence."""

import os
import shlex
import subprocess
import time
from pathlib import Path

import pytest

from firsttouch.errors import UserError
from firsttouch.trace.reading import Reading, read_recording
from firsttouch.trace.sites import Trace
from tests.conftest import Firsttouch
from tests.trace.conftest import NOBODY, PAGES, Compile, doubles_of, make_public, with_own_mounts

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
    assert _said(read).count("trouble: the kernel stops tracing set-user-ID") == 1
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


_FILTER = "a seccomp filter, such as that of a container, forbids perf events"
_SYSCTL = "run `sysctl kernel.perf_event_paranoid=2` as root (it is {})"
# As root of its own user namespace, whose capabilities are none for perf.
_ROOTLESS = ("unshare", "--user", "--map-root-user")


@pytest.mark.parametrize(
    ("paranoid", "user", "words", "prefix", "flags"),
    [
        ("2", 0, _FILTER, (), ()),
        ("2", 0, _FILTER, (), ("-DERROR=ENOSYS",)),
        ("3", NOBODY, _SYSCTL.format(3), (), ()),
        ("4", NOBODY, _SYSCTL.format(4), (), ()),
        ("3", NOBODY, _SYSCTL.format(3), _ROOTLESS, ()),
    ],
    ids=["a container", "ENOSYS", "Debian's default", "Ubuntu's", "a rootless container"],
)
def test_who_forbids_it_is_named(
    recorder: Path, compile_c: Compile, tmp_path: Path, paranoid: str, user: int, words: str,
    prefix: tuple[str, ...], flags: tuple[str, ...],
) -> None:  # fmt: skip
    recorder = make_public(recorder, tmp_path)
    deny = make_public(compile_c("deny.c", *flags), tmp_path)
    file = tmp_path / "trace.data"
    command = shlex.join(map(str, (*prefix, deny, recorder, "-o", file, "--", "true")))
    _replaced(_PARANOID, paranoid, command, tmp_path, user)
    with pytest.raises(UserError, match="perf") as refused:
        read_recording(file)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    "rights",
    [("--reuid", str(NOBODY)), ("--inh-caps", "-all", "--bounding-set", "-all")],
    ids=["another user's", "more capabilities"],
)
def test_a_process_with_other_rights_is_named(
    recorder: Path, tmp_path: Path, rights: tuple[str, ...]
) -> None:
    file = tmp_path / "trace.data"
    recorder = make_public(recorder, tmp_path)
    with subprocess.Popen(["sleep", "60"]) as process:
        pid = str(process.pid)
        subprocess.run(["setpriv", *rights, recorder, "-o", file, "-p", pid], check=False)
        process.kill()
    with pytest.raises(UserError, match=f"process {process.pid} is another user's, or has other"):
        read_recording(file)


@pytest.mark.parametrize("error", ["EPERM", "ENOSYS"])
def test_a_process_that_cannot_be_waited_for_is_not_said_to_be_missing(
    recorder: Path, compile_c: Compile, tmp_path: Path, error: str
) -> None:
    deny = compile_c("deny.c", "-DCALL=SYS_pidfd_open", f"-DERROR={error}")
    file = tmp_path / "trace.data"
    subprocess.run([deny, recorder, "-o", file, "-p", str(os.getpid())], check=False)
    with pytest.raises(UserError, match="cannot be waited for here"):
        read_recording(file)


def test_a_trace_that_gets_no_buffer_names_the_limit(recorder: Path, tmp_path: Path) -> None:
    """Perf's buffers of a user have a limit: the first trace takes all that it gives."""
    first, second = tmp_path / "first.data", tmp_path / "second.data"
    recorder = make_public(recorder, tmp_path)
    nobody = ["setpriv", "--reuid", str(NOBODY - 1), "prlimit", "--memlock=0", str(recorder), "-o"]
    with subprocess.Popen([*nobody, first, "--", "sleep", "60"]) as process:
        while not first.exists() or first.stat().st_size < 100:
            assert process.poll() is None
            time.sleep(0.05)
        subprocess.run([*nobody, second, "--", "true"], check=False)
        process.terminate()
    limit = int(Path("/proc/sys/kernel/perf_event_mlock_kb").read_text())
    with pytest.raises(UserError, match=f"perf_event_mlock_kb={2 * limit}` as root .it is {limit}"):
        read_recording(second)


def test_a_disk_that_gets_full_is_said_and_what_was_recorded_is_shown(
    firsttouch: Firsttouch, trouble: Path
) -> None:
    (firsttouch.directory / "full").mkdir()
    # On one CPU: the program's mappings are recorded before its faults, however late that is.
    pinned = ("taskset", "-c", str(min(os.sched_getaffinity(0))), trouble, "threads")
    words = firsttouch.command("trace", "--out", "full/out", "--", *pinned)
    script = (
        f"mount -t tmpfs -o size=768k none full && {{ {shlex.join(words)}; "
        "echo $?; mount -o remount,size=9m full; cp -r full/out kept; }"
    )
    done = with_own_mounts(firsttouch, script)
    assert done.stdout == "2\n"
    assert "its disk is full: free some space, then `firsttouch report full/out`" in done.stderr
    read = read_recording(firsttouch.directory / "kept/trace.data")
    assert doubles_of(read.trace) > PAGES
    assert "The recorder was killed, or its disk was full" in _said(read)


def test_a_read_only_directory_is_said_before_the_command_runs(firsttouch: Firsttouch) -> None:
    (firsttouch.directory / "fixed").mkdir()
    words = firsttouch.command("trace", "--out", "fixed/out", "--", "touch", "ran")
    script = f"mount -t tmpfs -o ro none fixed && exec {shlex.join(words)}"
    done = with_own_mounts(firsttouch, script, check=False)
    assert done.returncode == 2
    assert done.stderr == (
        "firsttouch: cannot write to fixed/out (Read-only file system): name another directory by "
        "--out.\n"
    )
    assert not (firsttouch.directory / "ran").exists()


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
