# SPDX-License-Identifier: GPL-2.0
"""The laboratory end to end, on real kernels in real guests."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firsttouch.build.host_tools import cross_compile
from firsttouch.build.programs import build_program
from firsttouch.build.sources import KernelSource, releases
from firsttouch.catalog.machines import load_machine
from firsttouch.errors import GuestError
from firsttouch.lab.guard import check_double_fault
from firsttouch.lab.plan import Request, make_plan
from firsttouch.lab.results import ResultStore, read_results
from firsttouch.lab.run import build_parts, run_cells
from firsttouch.progress import Reporter
from firsttouch.vm.guest import Guest, Timing
from tests.conftest import Firsttouch

pytestmark = pytest.mark.kernel

GIB = 1 << 30
PAGES = GIB // 4096
Run = Callable[..., dict[str, Any]]


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


@pytest.fixture(scope="module", params=sorted(releases()))
def measured(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """The issue's cells of 1 GiB, on one release."""
    firsttouch = Firsttouch(tmp_path_factory.mktemp("lab"))
    populate = ("--experiment", "populate", "--release", request.param)
    summaries = [
        _summary(firsttouch, *populate, "--set", f"by={by}", "--set", f"page={page}")
        for by, page in (("ldadd", "4k"), ("ldxr", "4k"), ("store", "4k"), ("ldadd", "2m"))
    ]
    summaries.append(_summary(firsttouch, "--experiment", "read-fault", "--release", request.param))
    return {
        "release": request.param,
        "rows": [row for summary in summaries for row in summary["rows"]],
    }


@pytest.mark.parametrize("by", ["ldadd", "ldxr"])
def test_stock_takes_two_faults_for_each_first_touch_and_on_takes_one(
    measured: dict[str, Any], by: str
) -> None:
    arms = _arms(measured, by=by, page="4k")
    assert abs(arms["stock"] - 2 * PAGES) <= 100
    assert abs(arms["on"] - PAGES) <= 100


def test_a_plain_store_and_a_plain_load_take_one_fault_in_both(measured: dict[str, Any]) -> None:
    read = {"rows": [row for row in measured["rows"] if row["experiment"] == "read-fault"]}
    for arms in (_arms(measured, by="store", page="4k"), _arms(read)):
        assert abs(arms["stock"] - PAGES) <= 100
        assert abs(arms["on"] - PAGES) <= 100


def test_a_huge_page_is_populated_by_one_fault(measured: dict[str, Any]) -> None:
    arms = _arms(measured, by="ldadd", page="2m")
    # 6.12 breaks up the huge zero page; 7.3 allocates on the second fault.
    stock = {"6.12": 513, "7.3": 2}[measured["release"]]
    assert arms == {"stock": stock * GIB // (2 << 20), "on": GIB // (2 << 20)}


_SMALL = ("--size", "16M", "--experiment", "populate", "--experiment", "file-read-fault",
          "--set", "page=4k")  # fmt: skip


def test_two_runs_from_nothing_give_identical_metrics(firsttouch: Firsttouch) -> None:
    results = []
    for out in ("one", "two"):
        _summary(firsttouch, *_SMALL, "--out", out)
        lines = (firsttouch.directory / out / "results.jsonl").read_text().splitlines()
        results.append({line["cell"]: line["metrics"] for line in map(json.loads, lines)})
    assert len(results[0]) == 2 * 8 + 3 * 2
    assert results[0] == results[1]
    pages = [(firsttouch.directory / out / "report.html").read_bytes() for out in ("one", "two")]
    assert pages[0] == pages[1]
    assert b"<svg" in pages[0]
    assert "The same: 22 cells" in firsttouch("compare", "one", "two").stdout


def test_the_guard_stops_a_qemu_that_hides_the_double_fault(
    images: Callable[[str, bool], Path], reporter: Reporter, tmp_path: Path
) -> None:
    """With CPUs in parallel QEMU reports an atomic's first touch as a write."""
    ftbench, init = build_program("bench", reporter), build_program("guest", reporter)

    def run(command: str, timing: Timing, cpus: int) -> list[dict[str, Any]]:
        guest = Guest(
            images("6.12", False), init, load_machine("neoverse-n1"), (), (command,),
            {"/ftbench": ftbench}, cpus=cpus, timing=timing,
        )  # fmt: skip
        return guest.run(tmp_path / "guard.log")

    assert check_double_fault(lambda command: run(command, "identical", 1)) == 2048
    assert check_double_fault(lambda command: run(command, "interleaved", 2)) == 2048
    with pytest.raises(GuestError, match=r"took 1,0\d\d page faults for 1,024 .* hides the effect"):
        check_double_fault(lambda command: run(command, "parallel", 2))


@pytest.fixture
def stock_image(images: Callable[[str, bool], Path]) -> Path:
    """A real kernel, asked for before a test changes the cache."""
    return images("6.12", False)


# -- guests that go wrong


@pytest.fixture
def guest(images: Callable[[str, bool], Path], reporter: Reporter) -> Callable[..., Guest]:
    def make(command: str, *boot: str) -> Guest:
        return Guest(
            images("6.12", False),
            build_program("guest", reporter),
            load_machine("neoverse-n1"),
            boot,
            (command,),
            {"/ftbench": build_program("bench", reporter)},
        )

    return make


def test_a_panic_fails_the_cell_with_the_end_of_its_log(
    guest: Callable[..., Guest], tmp_path: Path
) -> None:
    with pytest.raises(GuestError, match="Kernel panic") as error:
        guest("/ftbench --list", "init=/nothing", "rdinit=/nothing").run(tmp_path / "log")
    assert any("Kernel panic" in line for line in error.value.detail)


@pytest.mark.parametrize("body", ["for (;;);", "for (;;) pause();"], ids=["busy", "asleep"])
def test_a_hang_fails_the_cell(guest: Callable[..., Guest], tmp_path: Path, body: str) -> None:
    program = tmp_path / "hang"
    subprocess.run(
        [f"{cross_compile()}gcc", "-static", "-x", "c", "-o", program, "-"],
        input=f"#include <unistd.h>\nint main(void) {{ {body} }}\n", text=True, check=True,
    )  # fmt: skip
    hang = replace(guest("/hang"), files={"/hang": program})
    started = time.monotonic()
    with pytest.raises(GuestError, match="no sign of life for 20 s"):
        hang.run(tmp_path / "log", silence=20)
    assert time.monotonic() - started < 120


def test_a_command_that_fails_fails_the_cell_with_what_it_said(
    guest: Callable[..., Guest], tmp_path: Path
) -> None:
    with pytest.raises(GuestError, match="command 0 of the guest failed with status 2") as error:
        guest("/ftbench poplate").run(tmp_path / "log")
    assert any("populate" in line for line in error.value.detail)


def test_a_guest_that_ends_early_has_no_results(
    guest: Callable[..., Guest], tmp_path: Path
) -> None:
    early = guest("/ftbench --list", "rdinit=/ftbench")
    with pytest.raises(GuestError):
        early.run(tmp_path / "log")


def test_one_failed_cell_leaves_the_others(
    images: Callable[[str, bool], Path],
    sources: Callable[[str], KernelSource],
    reporter: Reporter,
    tmp_path: Path,
) -> None:
    settings = {"page": "4k", "by": "store"}
    (run,) = make_plan(
        Request(experiments=("populate",), arms=("stock",), size=16 << 20, settings=settings)
    )
    good = build_parts(sources("6.12"), [run], tmp_path, reporter).cells([run])[0]
    bad = replace(good, guest=replace(good.guest, commands=("/ftbench poplate",)))
    store = ResultStore(tmp_path)
    failures = run_cells([bad, good], store, tmp_path, reporter)
    assert [cell for cell, _ in failures] == [bad]
    assert store.get(good.key) is not None
    assert store.get(bad.key) is None


def test_a_full_output_directory_is_one_sentence_and_loses_nothing(
    stock_image: Path, firsttouch: Firsttouch, tmp_path: Path
) -> None:
    """Results on a small tmpfs, mounted in a namespace of its own."""
    (tmp_path / "small").mkdir()
    script = (
        f"mount -t tmpfs -o size=112k tmpfs {tmp_path}/small && "
        + " ".join(firsttouch.command("lab", *_KILLED, "--out", tmp_path / "small"))
        + f"; status=$?; cp {tmp_path}/small/results.jsonl {tmp_path}/kept; exit $status"
    )
    done = subprocess.run(
        ["unshare", "--map-root-user", "--mount", "sh", "-c", script],
        env=firsttouch.environment(), cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert "No space left on device" in done.stderr.splitlines()[-1]
    assert "--out" in done.stderr.splitlines()[-1]
    read_results(tmp_path / "kept")


# -- runs that are killed


_KILLED = ("--size", "16M", "--experiment", "populate", "--set", "page=4k", "--arm", "stock")


def _left_behind(mark: str) -> list[str]:
    """Return the command lines of processes that carry `mark`."""
    found = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            line = process.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if mark in line:
                found.append(line)
    return found


@pytest.fixture
def cache_with_image(
    images: Callable[[str, bool], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """A cache of this test's own that has the stock kernel, which takes minutes, and no more."""
    entry = images("6.12", False).parent
    own = tmp_path / "cache" / "firsttouch"
    shutil.copytree(entry, own / "images" / entry.name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield own
    shutil.rmtree(own)


@pytest.mark.parametrize("phase", ["fetch", "unpack", "build", "boot", "run", "write"])
def test_killed_in_any_phase_the_next_run_ends_the_same(
    stock_image: Path,
    firsttouch: Firsttouch,
    fake_linux: Path,
    cache_with_image: Path,
    tmp_path: Path,
    phase: str,
) -> None:
    """The build that is killed is of a tree that takes seconds; its image is a real kernel."""
    arguments = ["lab", *_KILLED]
    if phase == "build":
        arguments += ["--source", str(fake_linux)]
    environment = {"FAKE_IMAGE": str(stock_image)}
    out = firsttouch.directory / "out"

    def reached() -> bool:
        match phase:
            case "fetch":
                return any(cache_with_image.glob("packages/*.making"))
            case "unpack":
                return any(cache_with_image.glob("trees/*.making/kept/arch"))
            case "build":
                return any(cache_with_image.glob("images/*.making/objects/mm/part5.o"))
            case "boot":
                return any(out.glob("log/populate*"))
            case "run":
                return any("init: command" in log.read_text() for log in out.glob("log/populate*"))
            case _:
                file = out / "results.jsonl"
                return file.exists() and file.stat().st_size > 0

    if phase == "unpack":
        arguments = ["kernel", "series"]
    process = firsttouch.start(*arguments, **environment)
    while process.poll() is None and not reached():
        time.sleep(0.002)
    assert process.poll() is None, process.communicate()
    process.send_signal(signal.SIGKILL)
    process.wait()
    deadline = time.monotonic() + 10
    while _left_behind(str(tmp_path)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not _left_behind(str(tmp_path))

    if phase == "unpack":
        again = firsttouch("kernel", "series", "--release", "6.12")
        assert again.returncode == 0, again.stderr
        arguments = ["lab", *_KILLED]
    summaries = []
    for directory in (out, firsttouch.directory / "undisturbed"):
        done = firsttouch(*arguments, "--out", directory, **environment)
        assert done.returncode == 0, done.stderr
        summaries.append((directory / "summary.json").read_text())
    assert summaries[0] == summaries[1]


def test_an_interrupt_ends_all_guests_and_says_so(firsttouch: Firsttouch) -> None:
    process = firsttouch.start("lab", *_KILLED)
    log = firsttouch.directory / "out/log"
    while process.poll() is None and not any(log.glob("populate*")):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in said and "Traceback" not in said
    assert not _left_behind(str(firsttouch.directory))


def test_two_at_once_in_one_checkout_end_the_same(firsttouch: Firsttouch) -> None:
    first = firsttouch.start("lab", *_KILLED, "--json")
    second = firsttouch.start("lab", *_KILLED, "--json")
    outputs = [process.communicate(timeout=600) for process in (first, second)]
    assert [first.returncode, second.returncode] == [0, 0], outputs
    assert outputs[0][0] == outputs[1][0]
    assert sum("waiting for it" in said for _, said in outputs) == 1
    lines = (firsttouch.directory / "out/results.jsonl").read_text().splitlines()
    assert len(lines) == len({json.loads(line)["cell"] for line in lines}) == 8


def test_a_truncated_image_is_noticed_and_made_again(
    firsttouch: Firsttouch,
    fake_linux: Path,
    stock_image: Path,
    own_cache: Path,
) -> None:
    image = str(stock_image)
    request = ["lab", *_KILLED, "--set", "by=store", "--source", str(fake_linux)]
    assert firsttouch(*request, FAKE_IMAGE=image).returncode == 0
    before = (firsttouch.directory / "out/summary.json").read_text()
    (built,) = own_cache.glob("images/*/Image")
    with built.open("r+b") as file:
        file.truncate(built.stat().st_size // 2)
    again = firsttouch(*request, FAKE_IMAGE=image)
    assert again.returncode == 0, again.stderr
    assert "is damaged; making it again" in again.stderr
    assert (firsttouch.directory / "out/summary.json").read_text() == before


def test_a_truncated_last_result_is_measured_again(firsttouch: Firsttouch) -> None:
    _summary(firsttouch, *_KILLED)
    file = firsttouch.directory / "out/results.jsonl"
    before = (firsttouch.directory / "out/summary.json").read_text()
    file.write_text(file.read_text()[:-100])
    done = firsttouch("lab", *_KILLED)
    assert done.returncode == 0
    assert "1 unfinished" in done.stderr
    assert "Measuring: 1 cells" in done.stderr
    assert (firsttouch.directory / "out/summary.json").read_text() == before
