# SPDX-License-Identifier: GPL-2.0
"""The laboratory end to end, on real kernels in real guests."""

import contextlib
import json
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from firsttouch.building.programs import BENCH, INIT
from firsttouch.catalog.machines import load_machine
from firsttouch.errors import GuestError
from firsttouch.lab.outcomes import check_double_fault
from firsttouch.lab.results import read_results
from firsttouch.progress import Reporter
from firsttouch.tables import Fields, parse_json
from firsttouch.vm.guest import Clock, Guest
from firsttouch.vm.supervision import run_guest
from tests.conftest import Firsttouch
from tests.support.kernels import releases_with_stock

pytestmark = pytest.mark.kernel

SIZE = 16 << 20
PAGES = SIZE // 4096


def _summary(firsttouch: Firsttouch, *arguments: str) -> dict[str, Any]:
    done = firsttouch("lab", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    summary: dict[str, Any] = json.loads(done.stdout)
    return summary


def _arms(summary: dict[str, Any], metric: str = "page_faults", **params: Any) -> dict[str, int]:
    rows = [
        row
        for row in summary["rows"]
        if row["metric"] == metric and params.items() <= row["params"].items()
    ]
    assert len(rows) == 1, rows
    arms: dict[str, int] = rows[0]["arms"]
    return arms


@pytest.mark.parametrize("release", releases_with_stock())
def test_each_of_four_cpus_faults_twice_and_the_others_answer(
    firsttouch: Firsttouch, release: str
) -> None:
    summary = _summary(
        firsttouch, "--release", release, "--size", str(SIZE), "--experiment", "several-cpus",
        "--set", "by=ldadd", "--set", "cpus=4", "--arm", "stock", "--arm", "on",
    )  # fmt: skip

    def arms(metric: str) -> dict[str, int]:
        return _arms(summary, metric)

    assert arms("page_faults") == {"stock": 2 * PAGES, "on": PAGES}
    assert arms("fault_retries") == {"stock": 0, "on": 0}
    broadcasts = arms("tlbi_broadcast")
    assert broadcasts["stock"] >= PAGES > 100 > broadcasts["on"]
    assert arms("tlbi_answers") == {arm: 3 * count for arm, count in broadcasts.items()}
    # Those that start and end the threads.
    assert 0 < max(arms("ipi").values()) < 50
    assert not [
        row for row in summary["rows"] if row["metric"] in ("lock_waits", "sys_ns", "elapsed_ns")
    ]


_SMALL = {
    # `debian`: KASLR, page-table isolation, random offsets of stacks, a results port on PCI.
    "populate": (
        "3 cells", "--experiment", "populate", "--set", "by=ldadd", "--set", "page=4k",
        "--arm", "stock", "--arm", "on", "--arm", "debian",
    ),
    "file-read-fault": ("3 cells", "--experiment", "file-read-fault", "--set", "cache=cold"),
    "several CPUs": (
        "2 cells", "--experiment", "several-cpus", "--set", "by=ldadd", "--set", "cpus=4",
        "--arm", "stock", "--arm", "on",
    ),
    "all accesses": ("16 cells", "--experiment", "populate", "--set", "page=4k"),
    "all files": ("6 cells", "--experiment", "file-read-fault"),
}  # fmt: skip


@pytest.mark.parametrize(
    "named",
    [
        pytest.param(name, marks=pytest.mark.regress if name.startswith("all") else ())
        for name in _SMALL
    ],
)
def test_two_runs_from_nothing_give_identical_results(
    firsttouch: Firsttouch, own_outcomes: Callable[[str], Mapping[str, str]], named: str
) -> None:
    cells, *words = _SMALL[named]
    request = ("lab", "--size", "16M", *words)
    for out in ("one", "two"):
        done = firsttouch(*request, "--out", out, **own_outcomes(f"store-{out}"))
        assert done.returncode == 0, done.stderr
        assert f"Measuring: done, {cells.replace('cell', 'guest')}" in done.stderr
    for name in ("results.jsonl", "summary.json", "report.html"):
        files = [firsttouch.directory / out / name for out in ("one", "two")]
        assert files[0].read_bytes() == files[1].read_bytes()
    assert f"{len(read_results(firsttouch.directory / 'one'))} cells" == cells
    assert b"<table" in files[0].read_bytes()
    store = str(firsttouch.directory / "store-one")
    again = firsttouch(*request, "--out", "three", XDG_CACHE_HOME=store)
    assert again.returncode == 0, again.stderr
    assert "Measuring" not in again.stderr
    assert (firsttouch.directory / "three/results.jsonl").read_bytes() == (
        firsttouch.directory / "one/results.jsonl"
    ).read_bytes()


def test_the_guard_stops_a_qemu_that_hides_the_double_fault(
    images: Callable[[str, bool], Path], reporter: Reporter, tmp_path: Path
) -> None:
    """Under MTTCG QEMU reports an atomic's first touch as a write."""
    ftbench, init = BENCH.obtain(reporter), INIT.obtain(reporter)

    def run(command: str, timing: Clock, cpus: int) -> Fields:
        guest = Guest(
            images("6.12", False), init, load_machine("neoverse-n1"), (), (command,),
            {"/ftbench": ftbench}, cpus=cpus, timing=timing,
        )  # fmt: skip
        (done,) = run_guest(guest, tmp_path / "guard.log").commands
        return parse_json(done.lines[-1], "the guard's result")

    assert check_double_fault(lambda command: run(command, "identical", 1)) == 2048
    assert check_double_fault(lambda command: run(command, "identical", 4), 4) == 2048
    assert check_double_fault(lambda command: run(command, "interleaved", 2), 2) == 2048
    hidden = r"took 1,0\d\d page faults for 1,024 .* hides the double fault"
    # It is hidden from each CPU, because QEMU decides by how many there are.
    for touching in (1, 2):
        with pytest.raises(GuestError, match=hidden):
            check_double_fault(lambda command: run(command, "parallel", 2), touching)


# A cell for each size of page.
_KILLED = ("--size", "16M", "--experiment", "populate", "--set", "by=store", "--arm", "stock")


def _left_behind(mark: str) -> list[str]:
    """Return the command lines of processes that carry `mark`."""
    lines = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            line = process.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if mark in line:
                lines.append(line)
    return lines


def test_an_interrupt_ends_all_guests_and_says_so(
    firsttouch: Firsttouch, own_outcomes: Callable[[str], Mapping[str, str]]
) -> None:
    process = firsttouch.start("lab", *_KILLED, **own_outcomes("store"))
    log = firsttouch.directory / "out/log"
    while process.poll() is None and not any(log.glob("populate*")):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in said and "Traceback" not in said
    assert not _left_behind(str(firsttouch.directory))


def test_a_command_that_is_killed_leaves_nothing(firsttouch: Firsttouch) -> None:
    words = ("guest", "--arm", "stock", "--exec", "echo up; sleep 99")
    process = firsttouch.start(*words, TMPDIR=str(firsttouch.directory))
    assert process.stdout and process.stdout.readline() == "up\n"
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    process.kill()
    process.wait()
    deadline = time.monotonic() + 30
    while any(Path("/proc", child).exists() for child in children):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert children and not [*firsttouch.directory.iterdir()]
