# SPDX-License-Identifier: GPL-2.0
"""Each experiment on this host, small: fault counts are exact wherever they are taken."""

from __future__ import annotations

import ctypes
import json
import os
import platform
import struct
import subprocess
from pathlib import Path

import pytest

from tests.bench.conftest import Ftbench, faults, run_as_nobody

PAGE = os.sysconf("SC_PAGESIZE")
PAGES = 512
SIZE = str(PAGES * PAGE)
ATOMICS = ("ldadd", "swp", "cas", "casp")


def expected(kind: str) -> set[int]:
    """Return the faults that a first touch of PAGES pages may take."""
    if kind in ("store", "madvise"):
        return {PAGES}
    if kind == "load-store":
        return {2 * PAGES}
    if platform.machine() == "x86_64":
        return {PAGES}
    # arm64: twice, or once on a kernel with write-intent faults.
    return {PAGES, 2 * PAGES}


@pytest.mark.parametrize("kind", ["store", "load-store", *ATOMICS, "madvise"])
def test_populate_takes_exactly_its_faults(ftbench: Ftbench, kind: str) -> None:
    line = ftbench.line("populate", "--by", kind, "--page", "base", "--size", SIZE)
    assert line["experiment"] == "populate"
    assert line["params"] == {
        "by": kind,
        "page": "base",
        "size": int(SIZE),
        "threads": 1,
        "cpus": 1,
    }
    assert line["regions"] == ["populate"]
    assert faults(line) in expected(kind)
    assert line["metrics"]["anon_huge_bytes"] == 0
    # Of the whole system, so at least this process's.
    assert line["metrics"]["pgfault"] >= faults(line)


def test_ldxr(ftbench: Ftbench) -> None:
    line = ftbench.line("populate", "--by", "ldxr", "--page", "base", "--size", SIZE)
    if platform.machine() == "x86_64":
        assert line["metrics"] == {}
        assert set(line["unavailable"].values()) == {"x86-64 has no load-exclusive"}
        assert line["regions"] == []
    else:
        assert faults(line) in expected("ldxr")


@pytest.mark.parametrize("threads", [2, 3, 7])
def test_threads_do_not_add_faults(ftbench: Ftbench, threads: int) -> None:
    line = ftbench.line(
        "populate", "--by", "store", "--page", "base", "--size", SIZE, "--threads", str(threads)
    )
    assert faults(line) == PAGES


@pytest.mark.parametrize("cpus", range(1, min(4, len(os.sched_getaffinity(0))) + 1))
def test_each_of_the_cpus_has_a_thread(ftbench: Ftbench, cpus: int) -> None:
    line = ftbench.line(
        "populate", "--by", "store", "--page", "base", "--size", SIZE, "--cpus", str(cpus)
    )
    assert (line["params"]["threads"], faults(line)) == (cpus, PAGES)


def test_repetitions_are_all_kept(ftbench: Ftbench) -> None:
    lines = ftbench.lines(
        "populate", "--by", "store", "--page", "base", "--size", SIZE, "--repeat", "3"
    )
    assert [line["run"] for line in lines] == [1, 2, 3]
    assert [faults(line) for line in lines] == [PAGES] * 3


# By order, of 256 pages: faults, touched pages, resident pages.
ORDERS = {
    "up": (256, 256, 256),
    "down": (256, 256, 256),
    "stride-17": (15, 15, 15),
    "random": (256, 256, 256),
    "runs-2": (8, 8, 8),
    "runs-12": (48, 48, 48),
    "beside-1": (32, 32, 32),
    "beside-3": (64, 64, 64),
    "up-down": (256, 256, 256),
    "same": (16, 1, 1),
    # Each page but the first is read before it is written.
    "reader": (511, 256, 256),
}


@pytest.mark.parametrize(("order", "expects"), ORDERS.items(), ids=ORDERS)
def test_each_order_touches_its_pages(
    ftbench: Ftbench, order: str, expects: tuple[int, int, int]
) -> None:
    # No huge page fits.
    line = ftbench.line("touch-order", "--order", order, "--size", str(256 * PAGE))
    metrics = line["metrics"]
    assert (faults(line), metrics["touched_pages"], metrics["resident_pages"]) == expects


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


@pytest.mark.skipif(PAGE != 4096, reason="needs pages of 4096 bytes")
@pytest.mark.parametrize(
    "kind", ["cow-after-fork", "execute-only", "read-after-updates", "writable-shmem"]
)
def test_each_page_takes_one_fault_that_gains_nothing(ftbench: Ftbench, kind: str) -> None:
    assert faults(ftbench.line("other-faults", "--kind", kind, "--size", SIZE)) == PAGES


@pytest.mark.skipif(PAGE != 4096, reason="needs pages of 4096 bytes")
def test_preemption_after_fork_adds_no_fault(ftbench: Ftbench) -> None:
    """The kernel then writes to rseq(2)'s area, whose page the child shares."""
    lines = ftbench.lines(
        "other-faults", "--kind", "cow-after-fork", "--size", SIZE, "--repeat", "100"
    )
    assert {faults(line) for line in lines} == {PAGES}


def test_a_writable_file_lies_where_one_says(ftbench: Ftbench, tmp_path: Path) -> None:
    words = ("other-faults", "--kind", "writable-file", "--size", SIZE, "--dir")
    assert 0 < faults(ftbench.line(*words, str(tmp_path))) <= PAGES
    assert not list(tmp_path.iterdir())
    refused = ftbench(*words, str(tmp_path / "none"))
    assert refused.returncode == 2
    assert "name another folder with --dir" in refused.stderr


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
