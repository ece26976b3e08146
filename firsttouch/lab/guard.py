# SPDX-License-Identifier: GPL-2.0
"""The guard: a laboratory that hides the double fault must not report on it.

Under MTTCG QEMU reports the first access of an LSE atomic as a write, so that
a stock kernel takes one fault where hardware takes two. Every figure of such a
run would say that there is nothing to gain.
"""

from __future__ import annotations

from collections.abc import Callable

from firsttouch.build.host_tools import qemu_version
from firsttouch.errors import GuestError
from firsttouch.lab.guests import FTBENCH
from firsttouch.tables import Table

# Pages that the guard touches: few enough to take no time.
PAGES = 1024
_PAGE = 4096
# Kinds of first touch that a stock kernel answers with two faults, by
# preference; the second is for CPUs without the first.
KINDS = ("ldadd", "ldxr")


def guard_command(kind: str) -> str:
    """Return the guest's command that touches the guard's pages by `kind`."""
    size = PAGES * _PAGE
    return f"{FTBENCH} populate --set-thp --by {kind} --page 4k --size {size} --threads 1"


def check_double_fault(run: Callable[[str], Table]) -> int:
    """Return the page faults that a stock kernel takes for the guard's pages.

    `run` runs one guest command on the stock kernel and returns the line that
    it printed. Raises GuestError if the faults are not two a page: this QEMU,
    or the way it is run, hides the effect.
    """
    for kind in KINDS:
        faults = run(guard_command(kind)).table("metrics").optional("page_faults", int)
        if faults is None:
            continue
        # A tenth of a page's worth of slack: the program's own rare faults.
        if abs(faults - 2 * PAGES) > PAGES // 10:
            raise GuestError(
                f"a stock kernel took {faults:,} page faults for {PAGES:,} first touches by "
                f"{kind}, not {2 * PAGES:,}: {qemu_version()}, as it is run here, hides the "
                "effect that is to be measured; use round-robin TCG (-smp 1 or thread=single)"
            )
        return faults
    raise GuestError(
        f"the guest could not run any of {', '.join(KINDS)}: choose a machine whose CPU can."
    )
