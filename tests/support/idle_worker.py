# SPDX-License-Identifier: GPL-2.0
"""A worker whose guests are not run: `python -m tests.support.idle_worker SHARE HOST SECONDS`.

Each guest gives its own key after at most so many seconds.
"""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

from firsttouch.lab.orders import Runner
from firsttouch.lab.posted import Order, PostedPlan
from firsttouch.lab.share import Share, open_share
from firsttouch.lab.worker import Worker
from firsttouch.tables import Json


def given(order: Order) -> dict[str, Json]:
    """Return the outcome of an order that is not run."""
    return {"commands": [order.key] * 20}


def idle_runner(seconds: float) -> Runner:
    """Return a runner whose guests take at most so many seconds."""

    def run(order: Order, _log: Path, stop: threading.Event) -> Mapping[str, Json]:
        stop.wait(random.uniform(0, seconds))
        return given(order)

    return run


def make_orders(number: int, *, audit: bool = False) -> list[Order]:
    """Return orders as long as those of real guests."""
    guest: dict[str, Json] = {
        "image": "a" * 64, "init": "b" * 64, "machine": "neoverse-n1",
        "boot": ["sysctl.vm.write_intent=rmw", "zero_page_colors=16"],
        "commands": ["/ftbench populate --by ldadd --page 4k --size 67108864"],
        "files": {"/ftbench": "c" * 64}, "disk": None, "mounted": True, "cpus": 1,
        "timing": "identical", "memory": 1 << 32, "nodes": 1, "cpu": None, "board": [],
        "pmu": {"plugin": "d" * 64, "caches": True, "symbols": None, "pages": False},
        "port": "mmio", "firmware": None, "tables": "", "root": None,
    }  # fmt: skip
    # The numbers are spread as digests are.
    return [
        Order(f"{n * 0x9E3779B97F4A7C15 % 2**64:016x}" * 4, f"guest {n}", audit, guest)
        for n in range(number)
    ]


def main(root: str, host: str, seconds: str) -> None:
    """Work until nothing is left."""
    share = Share(open_share(Path(root)).root, lease=2.0)

    def make(plan: PostedPlan) -> Runner | None:
        return idle_runner(float(seconds)) if plan.common() else None

    Worker(share, make, host, print).work(idle=0.5)


if __name__ == "__main__":
    main(*sys.argv[1:])
