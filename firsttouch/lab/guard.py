# SPDX-License-Identifier: GPL-2.0
"""The guard: a laboratory that hides the double fault must not report on it.

A QEMU that runs CPUs in parallel makes an atomic's first touch arrive as a
write, so that a stock kernel takes one fault where hardware takes two. Every
figure of such a run would say that there is nothing to gain.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from firsttouch.errors import GuestError
from firsttouch.vm.guest import qemu_version

# Pages that the guard touches: few enough to take no time.
PAGES = 1024
_PAGE = 4096
# Kinds of first touch that a stock kernel answers with two faults, by
# preference; the second is for CPUs without the first.
KINDS = ("ldadd", "ldxr")


def guard_command(kind: str) -> str:
    """Return the guest's command that touches the guard's pages by `kind`."""
    return f"/ftbench populate --set-thp --by {kind} --page 4k --size {PAGES * _PAGE} --threads 1"


def check_double_fault(run: Callable[[str], list[dict[str, Any]]]) -> int:
    """Return the page faults that a stock kernel takes for the guard's pages.

    `run` runs one guest command on the stock kernel. Raises GuestError if
    they are not two a page: this QEMU, or the way it is run, hides the effect.
    """
    for kind in KINDS:
        measured = run(guard_command(kind))[-1]
        faults = measured.get("metrics", {}).get("page_faults")
        if faults is None:
            continue
        # A tenth of a page's worth of slack: the program's own rare faults.
        if abs(faults - 2 * PAGES) > PAGES // 10:
            raise GuestError(
                f"a stock kernel took {faults:,} page faults for {PAGES:,} first touches by "
                f"{kind}, not {2 * PAGES:,}: {qemu_version()}, as it is run here, hides the "
                "effect that is to be measured; use one that runs CPUs in turn (-smp 1)"
            )
        return int(faults)
    raise GuestError(
        f"the guest could not run any of {', '.join(KINDS)}: choose a machine whose CPU can."
    )
