# SPDX-License-Identifier: GPL-2.0
"""ftbench on a stock arm64 kernel: the effects that the features remove are there."""

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firsttouch.building.programs import BENCH, INIT
from firsttouch.catalog.kernels import release_names
from firsttouch.catalog.machines import load_machine
from firsttouch.files import REPOSITORY
from firsttouch.progress import Reporter
from firsttouch.vm.guest import Guest
from firsttouch.vm.supervision import run_guest
from tests.bench.conftest import Line
from tests.support.kernels import releases_with_stock

pytestmark = pytest.mark.kernel

_RUNS = tomllib.loads((REPOSITORY / "tests/data/ftbench-guest.toml").read_text())["run"]
_TIMELINE = "populate --by ldadd --size 64K --timeline"
_HUGE_TIMELINE = "populate --by ldadd --size 2M --page 2m --set-thp --timeline"
_HOT = "zero-conflict --level l2 --ways 8 --way_size 32K --rounds 100 --set-pool --hot_color"

Lines = dict[str, Line]
Boot = Callable[..., Lines]


@pytest.fixture(scope="module")
def boot(
    images: Callable[[str, bool], Path],
    reporter: Reporter,
    tmp_path_factory: pytest.TempPathFactory,
) -> Boot:
    """Runs commands in a guest of their own; on a changed kernel if there are boot words for it."""

    def run(
        release: str, commands: list[str], machine: str = "neoverse-n1", words: tuple[str, ...] = ()
    ) -> Lines:
        guest = Guest(
            images(release, bool(words)), INIT.obtain(reporter), load_machine(machine), words,
            tuple(f"/ftbench {command}" for command in commands),
            {"/ftbench": BENCH.obtain(reporter)},
        )  # fmt: skip
        ended = run_guest(guest, tmp_path_factory.mktemp("guest") / "log").commands
        assert all(done.status == 0 for done in ended)
        lines = [dict(line) for done in ended for line in done.objects()]
        return dict(zip(commands, lines, strict=True))

    return run


@pytest.fixture(scope="module", params=releases_with_stock())
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def stock(release: str, boot: Boot) -> Lines:
    return boot(release, [run["command"] for run in _RUNS])


@pytest.mark.parametrize("run", _RUNS, ids=lambda run: run["command"])
def test_stock_kernel_counts(release: str, stock: Lines, run: dict[str, Any]) -> None:
    line = stock[run["command"]]
    expected = run.get(release, run.get("metrics", {}))
    assert {name: line["metrics"][name] for name in expected} == expected
    assert line.get("backing") == run.get("backing", line.get("backing"))
    for name, reason in run.get("lacks", {}).items():
        assert reason in line["unavailable"][name]
    if "says" in run:
        assert not line["metrics"]
        assert run["says"] in next(iter(line["unavailable"].values()))


def _kinds(line: Line) -> list[list[int]]:
    """The page and the kind, read or write, of each sample of a timeline."""
    return [sample[1:] for sample in line["timeline"]]


def test_timelines_show_the_double_fault(release: str, stock: Lines) -> None:
    both = [[page, write] for page in range(16) for write in (0, 1)]
    assert _kinds(stock[_TIMELINE]) == both
    writes = range(512) if release == "6.12" else range(1)
    assert _kinds(stock[_HUGE_TIMELINE]) == [[0, 0], *([page, 1] for page in writes)]


def test_fork_copies_the_page_tables_and_hot_lines_have_the_colour(stock: Lines) -> None:
    """There is one page table for each 2 MiB, for fork to copy."""
    metrics = stock["fork-exit --size 64M"]["metrics"]
    assert sum(n for name, n in metrics.items() if name.startswith("pgalloc_")) >= 32
    for color in (0, 7):
        metrics = stock[f"{_HOT} {color}"]["metrics"]
        assert metrics["zero_color"] == metrics["zero_frame"] % 8


def test_cpu_without_lse(boot: Boot) -> None:
    """An instruction that the CPU lacks is reported as missing; the others are measured."""
    kinds = _RUNS[:8]
    lines = boot("6.12", [run["command"] for run in kinds], machine="cortex-a72")
    for run in kinds:
        line = lines[run["command"]]
        if run["command"].split()[-1] in ("ldadd", "swp", "cas", "casp"):
            assert line["metrics"] == {}
            assert set(line["unavailable"].values()) == {"this CPU has no LSE atomics"}
        else:
            assert line["metrics"]["page_faults"] == run["metrics"]["page_faults"]


@pytest.mark.parametrize("changed", release_names())
def test_changed_kernel_is_seen_to_be_one(boot: Boot, changed: str) -> None:
    """One fault for each page, handled as a write; and as many zero pages as colours."""
    words = ("zero_page_colors=8", "sysctl.vm.write_intent=1")
    lines = boot(changed, [_TIMELINE, f"{_HOT} 5"], words=words)
    assert _kinds(lines[_TIMELINE]) == [[page, 1] for page in range(16)]
    metrics = lines[f"{_HOT} 5"]["metrics"]
    assert (metrics["zero_frames"], metrics["zero_color"]) == (8, 0)
