# SPDX-License-Identifier: GPL-2.0
"""The series of no architecture on x86-64: their kselftests, and the instructions of faults.

The guest's clock counts an instruction as a nanosecond: `elapsed_ns` is user and kernel together.
"""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from firsttouch.building.kernel import KernelImage
from firsttouch.building.overlay import EVERY
from firsttouch.building.programs import BENCH, INIT
from firsttouch.building.source import KernelSource
from firsttouch.catalog.arms import Kernel, Kind
from firsttouch.progress import Reporter
from firsttouch.vm.guest import Guest, port_for
from firsttouch.vm.host import host_machine
from tests.linux.outcomes import Outcomes
from tests.linux.test_suites import complaints
from tests.support.ktap import parse
from tests.support.selftests import build_selftests

pytestmark = [pytest.mark.kernel, pytest.mark.regress]

_ARCHITECTURE, _RELEASE = "x86-64", "7.3"
_SUITES = ("mm/fault_ahead", "mm/page_counters", "mm/shared_around")
# Of ftbench, and the least and most that all series together may change its instructions, in per
# cent. Each byte that REP STOSB clears counts as one, 4,096 a page.
_TOUCHES = {
    "touch-order --order up --size 16M": (-60, -30),
    "touch-order --order random --size 16M": (-20, 0),
    "touch-order --order runs-3 --size 16M": (-20, 0),
    "touch-order --order runs-8 --size 16M": (-20, 1),
    "touch-order --by load-store --order up --size 16M": (-70, -30),
    "shared --set-thp --processes 1 --memory memfd --order up --size 16M": (-90, -50),
    "shared --set-thp --processes 1 --memory memfd --by load --order up --size 16M": (-5, 2),
    "unmap --set-thp --operation at-once --memory 4k --size 16M": (-95, 0),
}

MakeX86 = Callable[[Kind], Guest]


@pytest.fixture
def make_x86(sources: Callable[[str], KernelSource], reporter: Reporter) -> MakeX86:
    """A guest of the stock kernel, or of one with all series and sizes in order."""

    def make(kind: Kind) -> Guest:
        kernel = Kernel(kind, series=EVERY if kind == "changed" else "", architecture=_ARCHITECTURE)
        words = ["transparent_hugepage=madvise"]
        words += ["thp_anon=16K-64K:inorder;2M:inherit"] * (kind == "changed")
        return Guest(
            KernelImage(sources(_RELEASE), kernel).obtain(reporter),
            replace(INIT, architecture=_ARCHITECTURE).obtain(reporter),
            replace(host_machine(0, architecture=_ARCHITECTURE), cpu="max"),
            tuple(words), (), port=port_for(kernel),
        )  # fmt: skip

    return make


def test_kselftests(
    make_x86: MakeX86, sources: Callable[[str], KernelSource], outcomes: Outcomes,
    reporter: Reporter,
) -> None:  # fmt: skip
    binaries = build_selftests(sources(_RELEASE), reporter, _ARCHITECTURE)
    guest = replace(
        make_x86("changed"),
        commands=tuple(f"/{suite}" for suite in _SUITES),
        files={f"/{suite}": binaries[suite] for suite in _SUITES},
    )
    ended = outcomes.of(guest, "x86-64 kselftests").commands
    parsed = [(suite, parse(done.lines)) for suite, done in zip(_SUITES, ended, strict=True)]
    assert not {suite: said for suite, cases in parsed if (said := complaints(cases))}


def test_instructions_of_first_touches(
    make_x86: MakeX86, outcomes: Outcomes, reporter: Reporter
) -> None:
    ftbench = replace(BENCH, architecture=_ARCHITECTURE).obtain(reporter)

    def instructions(kind: Kind) -> list[int]:
        commands = tuple(f"/ftbench {touch}" for touch in _TOUCHES)
        guest = replace(make_x86(kind), commands=commands, files={"/ftbench": ftbench})
        ended = outcomes.of(guest, f"x86-64 {kind}").commands
        return [json.loads(done.lines[-1])["metrics"]["elapsed_ns"] for done in ended]

    wrong = []
    for (touch, (least, most)), before, after in zip(
        _TOUCHES.items(), instructions("stock"), instructions("changed"), strict=True
    ):
        change = 100 * (after / before - 1)
        row = f"{touch}: {before:,} to {after:,} instructions, {change:+.2f} %"
        print(row)
        if not least <= change <= most:
            wrong.append(row)
    assert not wrong
