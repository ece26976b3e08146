# SPDX-License-Identifier: GPL-2.0
"""Each experiment on this host, small: fault counts are exact wherever they are taken."""

import ctypes
import json
import os
import platform
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.bench.conftest import RUNS, Ftbench, check_run, faults, run_as_nobody

PAGE = os.sysconf("SC_PAGESIZE")
PAGES = 512
SIZE = str(PAGES * PAGE)


@pytest.mark.parametrize("run", RUNS["run"], ids=lambda run: " ".join(run["argv"]))
def test_each_run_takes_exactly_its_faults(ftbench: Ftbench, run: dict[str, Any]) -> None:
    check_run(ftbench, run)


def test_a_result_names_its_experiment_params_and_regions(ftbench: Ftbench) -> None:
    line = ftbench.line("populate", "--by", "store", "--page", "base", "--size", SIZE)
    assert (line["experiment"], line["regions"]) == ("populate", ["populate"])
    params = {"by": "store", "page": "base", "size": int(SIZE), "threads": 1, "cpus": 1}
    assert line["params"] == params
    assert line["metrics"]["anon_huge_bytes"] == 0
    # Of the whole system, so at least this process's.
    assert line["metrics"]["pgfault"] >= faults(line)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="arm64 has the instruction")
def test_ldxr(ftbench: Ftbench) -> None:
    line = ftbench.line("populate", "--by", "ldxr", "--page", "base", "--size", SIZE)
    assert (line["metrics"], line["regions"]) == ({}, [])
    assert set(line["unavailable"].values()) == {"x86-64 has no load-exclusive"}


@pytest.mark.parametrize("cpus", range(1, min(4, len(os.sched_getaffinity(0))) + 1))
def test_each_of_the_cpus_has_a_thread(ftbench: Ftbench, cpus: int) -> None:
    line = ftbench.line(
        "populate", "--by", "store", "--page", "base", "--size", SIZE, "--cpus", str(cpus)
    )
    assert (line["params"]["threads"], faults(line)) == (cpus, PAGES)


@pytest.mark.parametrize("memory", ["anonymous", "memfd", "system-v"])
@pytest.mark.parametrize("part", ["touch", "exit"])
def test_each_process_faults_for_itself(ftbench: Ftbench, memory: str, part: str) -> None:
    line = ftbench.line(
        "shared", "--processes", "3", "--memory", memory, "--part", part, "--order", "stride-17",
        "--size", str(256 * PAGE),
    )  # fmt: skip
    metrics = line["metrics"]
    assert metrics["touches"] == 3 * 15
    assert 3 <= metrics["process_faults"] <= 3 * 15
    assert metrics["process_faults"] <= metrics["mapped_pages"]
    assert faults(line) < 10


def test_fork_exit_leaves_the_zero_pages_alone(ftbench: Ftbench) -> None:
    """The parent's faults are those of the pages it writes itself, however many it maps."""
    few, many = (faults(ftbench.line("fork-exit", "--size", size)) for size in ("1M", "64M"))
    assert many < 10
    assert few < 10


def test_a_writable_file_lies_where_one_says(ftbench: Ftbench, tmp_path: Path) -> None:
    words = ("other-faults", "--kind", "writable-file", "--size", SIZE, "--dir")
    assert 0 < faults(ftbench.line(*words, str(tmp_path))) <= PAGES
    assert not list(tmp_path.iterdir())


def test_policy_that_gives_no_pages_of_64k(ftbench: Ftbench) -> None:
    """If the policy gives huge pages, each has one fault; otherwise the remedy is named."""
    line = ftbench.line("populate", "--by", "store", "--page", "64k", "--size", "4M")
    reasons = set(line["unavailable"].values())
    if line["metrics"]:
        fallbacks = line["metrics"]["folio_fault_fallback"]
        assert fallbacks or faults(line) == (4 << 20) // 65536
    else:
        assert len(reasons) == 1
        assert any(word in reasons.pop() for word in ("echo ", "this kernel", "prctl"))


def test_file_warm_and_cold(ftbench: Ftbench, tmp_path: Path) -> None:
    path = tmp_path / "file"
    warm = ftbench.line("file-read-fault", "--cache", "warm", "--size", "4M", "--file", str(path))
    # A fault maps neighbours too: there is at least one fault, at most one a page.
    assert 1 <= faults(warm) <= (4 << 20) // PAGE
    assert warm["metrics"]["major_faults"] == 0
    contents = path.read_bytes()
    assert len(contents) == 4 << 20
    assert all(any(contents[at : at + PAGE]) for at in range(0, len(contents), PAGE))

    done = ftbench("file-read-fault", "--cache", "cold", "--size", "4M", "--file", str(path))
    if done.returncode == 0:
        cold = json.loads(done.stdout)
        assert cold["metrics"]["major_faults"] >= 1
    else:
        # A file system without a disk behind it has no cold cache.
        assert done.returncode == 1
        assert "the cache is not cold" in done.stderr
    assert path.read_bytes() == contents


@pytest.mark.long
def test_cold_cache_on_tmpfs_is_found_out(ftbench: Ftbench) -> None:
    """A cache that is not cold must not be measured as one: the self-check can fail."""
    path = Path("/dev/shm", f"ftbench-test-{os.getpid()}")
    try:
        done = ftbench("file-read-fault", "--cache", "cold", "--size", "1M", "--file", str(path))
    finally:
        path.unlink(missing_ok=True)
    assert done.returncode == 1
    assert not done.stdout
    assert "the cache is not cold" in done.stderr


def test_damaged_file_is_found_out(ftbench: Ftbench, tmp_path: Path) -> None:
    path = tmp_path / "file"
    arguments = ("file-read-fault", "--cache", "warm", "--size", "1M", "--file", str(path))
    ftbench.line(*arguments)
    with path.open("r+b") as file:
        file.seek(8 * 4096)
        file.write(bytes(8))
    done = ftbench(*arguments)
    assert done.returncode == 1
    assert "the file at 32768 reads as 0" in done.stderr


def test_scratch_file_goes_away(ftbench: Ftbench) -> None:
    ftbench.line("file-read-fault", "--cache", "warm", "--size", "1M")
    assert not list(Path("/var/tmp").glob("ftbench.*"))


def perf_is_allowed() -> bool:
    """Ask the kernel itself for a page-fault event, apart from ftbench."""
    attr = (ctypes.c_uint64 * 16)()
    # type PERF_TYPE_SOFTWARE, size of the structure; config
    # PERF_COUNT_SW_PAGE_FAULTS; exclude_kernel and exclude_hv.
    attr[0], attr[1], attr[5] = 1 | (128 << 32), 2, (1 << 5) | (1 << 6)
    number = {"x86_64": 298, "aarch64": 241}[platform.machine()]
    fd = ctypes.CDLL(None, use_errno=True).syscall(number, attr, 0, -1, -1, 8)
    if fd >= 0:
        os.close(fd)
    return bool(fd >= 0)


def test_timeline(ftbench: Ftbench) -> None:
    line = ftbench.line(
        "populate", "--by", "load-store", "--page", "base", "--size", str(64 * PAGE), "--timeline"
    )
    if line["timeline"] is None:
        assert not perf_is_allowed()
        assert "perf" in line["timeline_absent"]
        return
    assert line["timeline_lost"] == 0
    assert line["timeline_kinds"] == "by order"
    samples = line["timeline"]
    assert [page for _, page, _ in samples] == [page for page in range(64) for _ in range(2)]
    assert [write for _, _, write in samples] == [0, 1] * 64
    times = [time for time, _, _ in samples]
    assert times == sorted(times)
    assert 0 < times[-1] <= line["metrics"]["elapsed_ns"]


def test_timeline_of_reads(ftbench: Ftbench) -> None:
    line = ftbench.line("read-fault", "--size", str(16 * PAGE), "--timeline")
    if line["timeline"] is None:
        assert not perf_is_allowed()
        return
    assert line["timeline_kinds"] == "only reads"
    assert [sample[1:] for sample in line["timeline"]] == [[page, 0] for page in range(16)]


def test_faults_that_found_no_room_are_counted(ftbench: Ftbench) -> None:
    """The kernel's limit for an ordinary user's buffer is below 128 MiB of double faults."""
    done = run_as_nobody(
        ftbench, "populate", "--by", "load-store", "--page", "base", "--size", "128M", "--timeline"
    )
    assert done.returncode == 0, done.stderr
    line = json.loads(done.stdout)
    if line["timeline"] is None:
        # Debian's kernels have a level 3, which excludes ordinary users.
        paranoid = int(Path("/proc/sys/kernel/perf_event_paranoid").read_text())
        assert paranoid > 2 or not perf_is_allowed()
        return
    assert len(line["timeline"]) + line["timeline_lost"] == faults(line)


def test_counters_are_numbers_or_have_a_remedy(ftbench: Ftbench) -> None:
    for counters, names in {
        "core": {"cycles_user", "cycles_kernel", "instructions_user", "instructions_kernel"},
        "cache": {"l1d_loads", "l1d_load_misses", "llc_loads", "llc_load_misses"},
        "tlb": {"dtlb_loads", "dtlb_load_misses"},
    }.items():
        line = ftbench.line("read-fault", "--size", SIZE, "--counters", counters)
        for name in names:
            if name in line["metrics"]:
                assert line["metrics"][name] >= 0
            else:
                assert ":" in line["unavailable"][name]
        if "instructions_user" in line["metrics"]:
            # Four instructions of the loop for each page, and little else.
            assert 4 * PAGES <= line["metrics"]["instructions_user"] <= 40 * PAGES


# Instructions of seccomp's filter: code, steps if true and if false, value.
_LOAD_NUMBER, _IS_EQUAL, _RETURN = 0x20, 0x15, 0x06
_FAIL_WITH_EPERM, _ALLOW = 0x50001, 0x7FFF0000
_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER = 38, 22, 2


def forbid_ptrace() -> None:
    """Let ptrace(2) fail in this process, as the seccomp profile of a container may."""
    number = {"x86_64": 101, "aarch64": 117}[platform.machine()]
    code = b"".join(
        struct.pack("<HBBI", *step)
        for step in (
            (_LOAD_NUMBER, 0, 0, 0),
            (_IS_EQUAL, 0, 1, number),
            (_RETURN, 0, 0, _FAIL_WITH_EPERM),
            (_RETURN, 0, 0, _ALLOW),
        )
    )
    buffer = ctypes.create_string_buffer(code)
    program = struct.pack("<H6xQ", len(code) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    assert not libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    assert not libc.prctl(_SET_SECCOMP, _FILTER, program)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a program its root directory")
def test_a_program_that_may_not_be_traced_does_not_run(ftbench: Ftbench) -> None:
    done = subprocess.run(
        [ftbench.path, "programs"],
        capture_output=True,
        text=True,
        check=True,
        timeout=20,
        preexec_fn=forbid_ptrace,
    )
    line = json.loads(done.stdout.splitlines()[0])
    assert all("ptrace(2) is forbidden here" in why for why in line["unavailable"].values())
