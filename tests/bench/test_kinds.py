# SPDX-License-Identifier: GPL-2.0
"""update-kinds: each build updates the same memory, by the instructions it is named for."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest

from firsttouch.building.host_tools import cross_compile
from firsttouch.building.programs import build_init, build_kinds
from firsttouch.catalog.experiment_files import load_experiment
from firsttouch.catalog.machines import load_machine
from firsttouch.progress import Reporter
from firsttouch.vm.guest import Guest
from firsttouch.vm.supervision import run_guest
from tests.bench.conftest import Ftbench, Line, make_ftbench
from tests.support.kernels import releases_with_stock

SIZE = 1 << 20
PAGES = SIZE // 4096
_EXPERIMENT = load_experiment("update-kinds")
KINDS, COMPILERS, MARCHES = (_EXPERIMENT.parameters[name] for name in ("kind", "compiler", "march"))
_SEED = 88172645463325252
_WORD = (1 << 64) - 1


@pytest.fixture(scope="module")
def kinds(ftbench: Ftbench, tmp_path_factory: pytest.TempPathFactory) -> Ftbench:
    """This machine's ftbench-kinds; only what ftbench lacks is compiled."""
    output = tmp_path_factory.mktemp("kinds") / "native"
    shutil.copytree(ftbench.path.parent, output)
    return Ftbench(make_ftbench("", output, "ftbench-kinds"))


def _random_numbers(count: int) -> Iterable[int]:
    state = _SEED
    for _ in range(count):
        state ^= state << 13 & _WORD
        state ^= state >> 7
        state ^= state << 17 & _WORD
        yield state


def _checksum(words: Iterable[int], value: int) -> int:
    for word in words:
        value = (value * 31 + word) & _WORD
    return (value ^ value >> 32) & 0xFFFFFFFF


def _of_counters(size: int) -> int:
    """Return the checksum of 64-bit counters that are incremented at random."""
    words = [0] * (size // 8)
    last = _SEED
    for last in _random_numbers(size // 512):
        words[last % len(words)] += 1
    return _checksum(words, last)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_all_builds_do_the_same(kinds: Ftbench, kind: str) -> None:
    lines = [
        kinds.line("update-kinds", "--kind", kind, "--compiler", str(compiler), "--march",
                   str(march), "--size", str(SIZE))["metrics"]
        for compiler, march in itertools.product(COMPILERS, MARCHES)
    ]  # fmt: skip
    assert len(lines) == 4
    for metrics in lines:
        assert metrics["checksum"] == lines[0]["checksum"]
        assert metrics["pages_in_vain"] == 0
        assert 0.9 * PAGES < metrics["resident_pages"] + metrics["zero_pages"] <= PAGES


@pytest.mark.long
def test_the_checksum_is_that_of_what_the_sources_say(kinds: Ftbench) -> None:
    def checksum(kind: str) -> int:
        line = kinds.line("update-kinds", "--kind", kind, "--size", "64K")
        return int(line["metrics"]["checksum"])

    every = [1 << 32 | 1] * (65536 // 8)
    assert checksum("increment") == _checksum(every, 65536 // 4)
    assert checksum("bss-counters") == checksum("atomic-counters") == _of_counters(65536)


def test_without_builds_it_is_listed_and_says_what_to_do(reporter: Reporter) -> None:
    listed = Ftbench(build_kinds(reporter, native=True))
    assert "update-kinds " in listed("--list").stdout
    done = listed("update-kinds")
    assert (done.returncode, done.stdout) == (2, "")
    assert "run `make ftbench-kinds`" in done.stderr


@pytest.mark.parametrize("compiler", COMPILERS)
def test_only_atomics_depend_on_lse(tmp_path: Path, compiler: str) -> None:
    instructions_of = {}
    for march in map(str, MARCHES):
        built = make_ftbench(cross_compile(), tmp_path, f"builds/{compiler}/{march}.o")
        text = subprocess.run(
            [f"{cross_compile()}objdump", "-d", built], capture_output=True, text=True, check=True
        ).stdout
        assert "outline" not in text
        exclusive = set(re.findall(r"\tlda?xr\t", text))
        instructions_of[march] = (bool(exclusive), "\tldadd\t" in text or "\tstadd\t" in text)
    assert instructions_of == {"armv8-a": (True, False), "armv8-a+lse": (False, True)}


def _ran(image: Path, machine: str, commands: Sequence[str], log: Path) -> list[Line]:
    """Return what a guest's commands printed."""
    reporter = Reporter()
    guest = Guest(
        image, build_init(reporter), load_machine(machine), (),
        tuple(f"/ftbench update-kinds --size {SIZE} {command}" for command in commands),
        {"/ftbench": build_kinds(reporter)},
    )  # fmt: skip
    return [dict(line) for done in run_guest(guest, log).commands for line in done.objects()]


@pytest.mark.kernel
@pytest.mark.parametrize("release", releases_with_stock())
def test_faults_on_a_stock_kernel(
    images: Callable[[str, bool], Path], kinds: Ftbench, tmp_path: Path, release: str
) -> None:
    """Each build's loads and stores, and both forms of an atomic, fault twice on each page."""
    cells = list(itertools.product(KINDS, COMPILERS, MARCHES))
    commands = [f"--kind {kind} --compiler {compiler} --march {m}" for kind, compiler, m in cells]
    lines = _ran(images(release, False), "neoverse-n1", commands, tmp_path / "log")
    for (kind, *_), line in zip(cells, lines, strict=True):
        metrics = line["metrics"]
        host = kinds.line("update-kinds", "--kind", str(kind), "--size", str(SIZE))["metrics"]
        same = ("checksum", "resident_pages", "zero_pages", "pages_in_vain")
        assert {name: metrics[name] for name in same} == {name: host[name] for name in same}
        assert metrics["doubles"] == metrics["resident_pages"]
        if kind == "increment":
            assert metrics["page_faults"] == 2 * PAGES
        if kind == "sparse":
            assert metrics["resident_pages"] < PAGES / 10 < metrics["zero_pages"]


@pytest.mark.kernel
def test_a_cpu_without_lse_runs_what_is_built_for_it(
    images: Callable[[str, bool], Path], tmp_path: Path
) -> None:
    commands = [f"--kind atomic-counters --march {march}" for march in MARCHES]
    exclusive, lse = _ran(images("6.12", False), "cortex-a72", commands, tmp_path / "log")
    assert exclusive["metrics"]["doubles"] == exclusive["metrics"]["resident_pages"] > 0
    assert lse["metrics"] == {}
    assert set(lse["unavailable"].values()) == {"this CPU has no LSE atomics"}
