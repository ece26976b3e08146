# SPDX-License-Identifier: GPL-2.0
"""Memory in vain: what the PMU finds is what a program finds in its own pages."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from firsttouch.build.host_tools import cross_compile
from firsttouch.build.programs import build_ftbench, build_init, build_pmu, build_recorder
from firsttouch.catalog.arms import load_arm
from firsttouch.catalog.machines import load_machine
from firsttouch.finder.document import parse_trace
from firsttouch.finder.sites import Trace
from firsttouch.lab.traces import add_watches, with_traces
from firsttouch.progress import Reporter
from firsttouch.tables import Json, Table
from firsttouch.vm.guest import Guest
from firsttouch.vm.pmu import Pmu
from firsttouch.vm.supervision import run_guest

pytestmark = pytest.mark.kernel

# Where the recorder mounts what a program needs, below the program's root directory.
MOUNTED = ("proc", "sys", "dev", "tmp", "var/tmp")
HERE = Path(__file__).parent

Run = Callable[[str, str], tuple[Trace, list[int]]]


@pytest.fixture
def run(images: Callable[[str, bool], Path], tmp_path: Path) -> Run:
    """Return what runs vain.c on an arm: the trace, and what it counted in each of two runs."""
    reporter, machine = Reporter(), load_machine("neoverse-n1")
    program, script = tmp_path / "vain", tmp_path / "script"
    script.write_text("vain")
    subprocess.run(
        [f"{cross_compile()}gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-static",
         "-o", program, HERE / "vain.c"],
        check=True,
    )  # fmt: skip

    def start(release: str, arm: str) -> tuple[Trace, list[int]]:
        log = tmp_path / "log"
        guest = Guest(
            images(release, arm != "stock"),
            build_init(reporter),
            machine,
            machine.boot_words(load_arm(arm).boot),
            ("/ftbench doubles --program any --root /root",),
            {
                "/ftbench": build_ftbench(reporter),
                "/ftrecord": build_recorder(reporter, native=False),
                # Whatever the script says, this is what runs it.
                "/root/bin/sh": program,
                "/scripts/any": script,
                **{f"/root/{folder}/any": script for folder in MOUNTED},
            },
            pmu=Pmu(build_pmu(reporter), caches=False, pages=True),
        )
        ended = run_guest(guest, log)
        (done,) = ended.commands
        assert done.status == 0 and ended.counts
        lines = add_watches(done.objects(), iter(ended.counts.watches))
        recorded: dict[str, Json] = {"commands": [{"lines": lines}]}
        (command,) = Table(log, with_traces(Table(log, recorded), tmp_path)).tables("commands")
        trace = parse_trace(command.tables("lines")[0].table("trace"))
        said = re.findall(r"^in vain: (\d+)$", log.read_text(), re.MULTILINE)
        return trace, [int(count) for count in said]

    return start


@pytest.mark.parametrize("release", ["6.12", "7.3"])
def test_the_pmu_counts_what_the_program_finds_in_its_pages(run: Run, release: str) -> None:
    trace, (recorded, alone) = run(release, "learn")
    assert recorded == alone
    # A huge page, and pages of the other parts.
    assert recorded > 512 + 50
    assert trace.upgraded is not None and trace.upgraded > 1000
    assert trace.vain is not None
    assert (trace.vain.pages, trace.vain.unsure) == (recorded, 0)


@pytest.mark.parametrize("arm", ["stock", "rmw"])
def test_other_arms_have_nothing_in_vain(run: Run, arm: str) -> None:
    trace, (recorded, _) = run("6.12", arm)
    assert recorded == 0
    if arm == "stock":
        assert (trace.upgraded, trace.vain) == (None, None)
    else:
        assert trace.vain is not None and trace.vain.pages == 0
