# SPDX-License-Identifier: GPL-2.0
"""Layouts: the same on every host, each cell in as many as asked, and layout 0 the guest as is."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firsttouch.building.apt import unpack
from firsttouch.building.programs import BENCH, INIT, ORDERS
from firsttouch.catalog.experiments import Packages
from firsttouch.catalog.machines import load_machine
from firsttouch.lab.cells import layout_of, parse_layouts
from firsttouch.lab.guests import make_jobs
from firsttouch.lab.plan import Plan, Request, make_plan
from firsttouch.lab.results import FILE_NAME, read_results
from firsttouch.progress import Reporter
from firsttouch.tables import Fields
from firsttouch.vm.guest import Guest
from firsttouch.vm.qemu import inputs
from firsttouch.vm.supervision import run_guest
from tests.conftest import Firsttouch
from tests.lab.conftest import FakeLab
from tests.support.contract import real_contract

_BUSYBOX = Packages("trixie", ("busybox-static",))


def _plan(**asked: Any) -> Plan:
    asked = {"experiments": ("read-fault",), "arms": ("stock", "on"), **asked}
    return make_plan(Request(**asked), "6.12", real_contract())


def test_a_number_decides_its_layout_on_every_host() -> None:
    """Changing these changes what every stored result of a layout means."""
    first, second = layout_of(1), layout_of(2)
    assert [len(word) for word in (*first.words, *second.words)] == [458, 738, 266, 946]
    assert (first.kaslr_seed, second.kaslr_seed) == (0xCCE5FE6B887A787C, 0x7BA7D0530CF63144)
    assert (first.order, second.order) == (1, 2)


def test_each_cell_runs_in_each_layout_the_first_layout_of_all_first() -> None:
    single, three = _plan(), _plan(layouts=parse_layouts("3"))
    assert [cell for cell in three.cells if not cell.layout] == list(single.cells)
    assert three.groups[: len(single.groups)] == single.groups
    assert [cell.layout for cell in three.cells] == [0, 1, 2] * len(single.cells)
    assert len({cell.identity for cell in three.cells}) == 3 * len(single.cells)
    assert len({cell.log_name for cell in three.cells}) == 3 * len(single.cells)
    grouped = {cell.identity for group in three.groups for cell in group}
    assert grouped == {cell.identity for cell in three.cells}


def test_a_layout_changes_the_line_the_seed_and_the_program_of_a_guest(fake_lab: FakeLab) -> None:
    plan = _plan(arms=("on",), layouts=(0, 5))
    parts = fake_lab.build_parts(fake_lab.source, plan, Reporter())
    first, second = (job.guest for job in make_jobs(plan, fake_lab.source, parts))
    layout = layout_of(5)
    assert second == replace(
        first, boot=(*first.boot, *layout.words), kaslr_seed=layout.kaslr_seed,
        files={"/ftbench": parts[replace(BENCH, order=5 % ORDERS)]},
    )  # fmt: skip
    trees = [inputs(guest).blobs["device tree"] for guest in (first, second)]
    changed = trees[1]
    # That of random numbers is the digest of that of addresses.
    for seed in (bytes, lambda seed: hashlib.sha256(seed).digest()):
        here, there = (seed(guest.kaslr_seed.to_bytes(8)) for guest in (second, first))
        assert here in changed
        changed = changed.replace(here, there)
    assert changed == trees[0]


@pytest.mark.kernel
def test_layouts_of_a_real_cell_take_the_same_faults_and_layout_0_is_the_cell_without(
    firsttouch: Firsttouch, own_outcomes: Callable[[str], Mapping[str, str]]
) -> None:
    words = ("--experiment", "populate", "--set", "by=ldadd", "--set", "page=4k", "--size", "1M",
             "--arm", "stock", "--arm", "on")  # fmt: skip
    for out, more in (("one", ()), ("three", ("--layouts", "3"))):
        done = firsttouch("lab", *words, *more, "--out", out, **own_outcomes(f"store-{out}"))
        assert done.returncode == 0, done.stderr
    alone, three = (
        (firsttouch.directory / out / FILE_NAME).read_text() for out in ("one", "three")
    )
    lines = three.splitlines(keepends=True)
    assert "".join(line for line in lines if json.loads(line)["cell"]["layout"] == 0) == alone
    results = read_results(firsttouch.directory / "three")
    assert [result.cell.layout for result in results] == [0, 1, 2] * 2
    for arm, faults in (("stock", 512), ("on", 256)):
        of_arm = [result for result in results if result.cell.arm == arm]
        counted = [
            Fields("", result.lines[-1]).table("metrics").values_of(float) for result in of_arm
        ]
        assert [metrics["page_faults"] for metrics in counted] == [faults] * 3
        for name in ("device tree", "initial RAM disk", "ftbench"):
            assert len({result.provenance.digests[name] for result in of_arm}) == 3, name
        assert len({result.provenance.boot for result in of_arm}) == 3


@pytest.mark.kernel
def test_a_layout_moves_the_kernel_and_reaches_the_programs_environment(
    images: Callable[[str, bool], Path], reporter: Reporter, tmp_path: Path
) -> None:
    """/proc/kallsyms says where the kernel is, environ what a command has from init."""
    addresses = []
    for number in range(3):
        layout = layout_of(number)
        guest = Guest(
            images("6.12", True), INIT.obtain(reporter), load_machine("neoverse-n1"), layout.words,
            ("/busybox cat /proc/self/environ", "/busybox grep -w _text /proc/kallsyms"),
            {"/busybox": unpack(_BUSYBOX, reporter) / "usr/bin/busybox"},
            kaslr_seed=layout.kaslr_seed,
        )  # fmt: skip
        environment, text = run_guest(guest, tmp_path / f"{number}.log").commands
        padding = [word for word in environment.lines[0].split("\0") if word.startswith("LAYOUT=")]
        assert padding == list(layout.words[1:])
        addresses.append(text.lines[0].split()[0])
    assert len(set(addresses)) == 3
