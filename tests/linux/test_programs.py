# SPDX-License-Identifier: GPL-2.0
"""Programs of Debian's on the changed kernels: one fault for OpenJDK's two, no stressor fails."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace

import pytest

from firsttouch.build.disks import RootDisk
from firsttouch.build.programs import build_ftbench
from firsttouch.catalog.experiment_files import load_experiment
from firsttouch.catalog.releases import release_names
from firsttouch.progress import Reporter
from firsttouch.vm.guest import Guest, Timing
from firsttouch.vm.protocol import Done
from tests.linux.conftest import AddScript, Begin, MakeGuest
from tests.linux.outcomes import Outcomes
from tests.support.ktap import Case

pytestmark = pytest.mark.kernel

_STRESSORS = [
    name
    for name in load_experiment("programs").parameters["program"]
    if str(name).startswith("stress-ng-")
]

_TRACED = ("trace_event=write_intent:*",)


def _with_programs(guest: Guest, experiment: str, lines: list[str], reporter: Reporter) -> Guest:
    """A guest that runs lines of arguments of an experiment that needs a root disk."""
    packages = load_experiment(experiment).root
    assert packages
    root = RootDisk(packages)
    return replace(
        guest,
        commands=tuple(f"/ftbench {experiment} {root.arguments} {line}" for line in lines),
        files={"/ftbench": build_ftbench(reporter)},
        disk=root.obtain(reporter),
    )


def _metrics(done: Done) -> dict[str, int]:
    (line,) = done.lines
    metrics: dict[str, int] = json.loads(line)["metrics"]
    return metrics


def test_openjdk_touches_each_page_of_its_heap_with_one_fault_for_two(
    make_guest: MakeGuest, outcomes: Outcomes, reporter: Reporter, add_script: AddScript
) -> None:
    """RMW alone does not help it: it is compiled for CPUs without LSE, and touches by LDXR."""
    per_page = {}
    lines = [
        f"--java 21 --collector serial --thp never --set-thp --pretouch {state}"
        for state in ("off", "on")
    ]
    for arm in ("stock", "rmw", "on"):
        guest = make_guest("6.12", None, *(_TRACED if arm == "on" else ()), arm=arm)
        guest = _with_programs(guest, "openjdk-pretouch", lines, reporter)
        if arm == "on":
            # The last events are the heap's.
            guest = add_script(guest, "tail -n 2000 /sys/kernel/tracing/trace\n")
        off, on, *trace = outcomes.of(guest, f"openjdk {arm}").commands
        without, touched = _metrics(off), _metrics(on)
        faults = touched["page_faults"] - without["page_faults"]
        per_page[arm] = faults / touched["heap_pages"]
    assert per_page == {
        "stock": pytest.approx(2, abs=0.1),
        "rmw": pytest.approx(2, abs=0.1),
        "on": pytest.approx(1, abs=0.1),
    }
    _check_touched_by_a_load_exclusive(trace[0])


def _check_touched_by_a_load_exclusive(trace: Done) -> None:
    """One instruction, by the tracepoint. Without learning only a load-exclusive is uncertain."""
    events = re.findall(r"pc=(0x\w+) certain=([01])", "\n".join(trace.lines))
    ((pc, certain), count), *_ = Counter(events).most_common()
    print(f"{count} of {len(events)} upgraded faults: certain={certain} at {pc}")
    assert certain == "0"
    assert count > 0.9 * len(events) > 1000


@pytest.mark.regress
@pytest.mark.parametrize("timing", ["identical", "parallel"])
@pytest.mark.parametrize(
    ("variant", "arm"),
    # A guest fails if its kernel reports a problem. No changed kernel does, so the larger
    # configurations need no stock kernel for comparison.
    [(None, "stock"), (None, "on"), ("debug", "on"), ("server", "on")],
    ids=lambda name: name or "lab",
)
@pytest.mark.parametrize("release", release_names())
def test_stressors_end_well(
    make_guest: MakeGuest,
    outcomes: Outcomes,
    record: Begin,
    reporter: Reporter,
    release: str,
    variant: str | None,
    arm: str,
    timing: Timing,
) -> None:
    """Every stressor of stress-ng for memory management; on two CPUs in parallel, too."""
    recorded = record(release, variant, f"stress-ng, {arm}")
    # numa wants two nodes.
    stressors = [*_STRESSORS, *(["stress-ng-numa"] if variant == "server" else [])]
    guest = _with_programs(
        make_guest(release, variant, arm=arm),
        "programs",
        [f"--program {name}" for name in stressors],
        reporter,
    )
    guest = replace(
        guest,
        timing=timing,
        cpus=2 if timing == "parallel" else 1,
        nodes=2 if variant == "server" else 1,
    )
    done = outcomes.of(guest, f"{release} {variant or 'lab'} stress-ng {arm} {timing}").commands
    cases = [
        Case(str(name), "failed" if one.status else "passed", f"status {one.status}")
        for name, one in zip(stressors, done, strict=True)
    ]
    recorded(cases)
    assert not [case.name for case in cases if case.outcome == "failed"]
