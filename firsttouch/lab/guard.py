# SPDX-License-Identifier: GPL-2.0
"""The guard: checks that a stock kernel under this QEMU takes the double fault.

Under MTTCG QEMU reports the first access of an LSE atomic as a write, so that
a stock kernel takes one fault where hardware takes two. Every figure of such a
run would wrongly show no gain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from firsttouch.building.host_tools import qemu_version
from firsttouch.building.store import stored_outcome
from firsttouch.catalog.machines import PAGE_SIZE
from firsttouch.errors import GuestError
from firsttouch.lab.guests import FTBENCH, Job
from firsttouch.lab.outcomes import measure_guest
from firsttouch.lab.plan import Plan
from firsttouch.progress import Reporter
from firsttouch.tables import Fields
from firsttouch.vm.qemu import guest_key

# Number of pages that the guard touches; few, so that it is quick.
PAGES = 1024
# Kinds of first touch that cost a stock kernel two faults. The second is for
# CPUs without the first.
KINDS = ("ldadd", "ldxr")


def guard(jobs: Iterable[Job], plan: Plan, logs: Path, reporter: Reporter) -> None:
    """Check the first job on a kernel without the features of each machine and number of CPUs.

    Raises GuestError as `check_double_fault` does.
    """
    checked = set()
    for job in jobs:
        setup = job.cells[0].machine, job.guest.cpus
        if plan.arm(job.cells[0]).kernel.unchanged and setup not in checked:
            checked.add(setup)
            _check(job, logs, reporter)


def _check(job: Job, logs: Path, reporter: Reporter) -> None:
    """Check for the double fault, once per kernel, machine, number of CPUs and QEMU.

    The store keeps the outcome.
    """
    machine, cpus = job.cells[0].machine, job.guest.cpus
    where = machine if cpus == 1 else f"{machine} with {cpus} CPUs"

    def run(command: str) -> Fields:
        guest = replace(job.guest, commands=(command,), boot=(), disk=None, pmu=None)
        key = guest_key(guest)
        log = logs / f"guard-{machine}-{cpus}.log"
        outcome = stored_outcome(key) or measure_guest(guest, key, log)
        (done,) = outcome.tables("commands")
        return done.tables("lines")[-1]

    faults = check_double_fault(run, cpus)
    arm = job.cells[0].arm
    reporter.say(f"Guard: {arm} on {where} takes {faults:,} faults for 1,024 atomics.")


def guard_command(kind: str, cpus: int) -> str:
    """Return the command that touches the guard's pages by `kind`, a share on each of `cpus`."""
    size = PAGES * PAGE_SIZE
    return f"{FTBENCH} populate --set-thp --by {kind} --page 4k --size {size} --cpus {cpus}"


def check_double_fault(run: Callable[[str], Fields], cpus: int = 1) -> int:
    """Return the page faults that a stock kernel takes for the guard's pages.

    `run` runs one guest command on the stock kernel, on a guest of `cpus` CPUs,
    and returns the line that it printed. Raises GuestError if there are not two
    faults per page: then QEMU hides the effect.
    """
    for kind in KINDS:
        faults = run(guard_command(kind, cpus)).table("metrics").optional("page_faults", int)
        if faults is None:
            continue
        # The program itself and its threads take a few faults: allow one per ten pages.
        if abs(faults - 2 * PAGES) > PAGES // 10:
            raise GuestError(
                f"a stock kernel took {faults:,} page faults for {PAGES:,} first touches by "
                f"{kind}, not {2 * PAGES:,}: {qemu_version()} hides the double fault: "
                "measure with the QEMU of Debian 12 or newer"
            )
        return faults
    raise GuestError(
        f"the guest could not run any of {', '.join(KINDS)}: choose a machine whose CPU can."
    )
