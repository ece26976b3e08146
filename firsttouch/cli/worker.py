# SPDX-License-Identifier: GPL-2.0
"""`firsttouch worker`: runs guests that `firsttouch lab --on` left in a shared directory."""

from __future__ import annotations

import argparse
import concurrent.futures
import socket
import threading
from pathlib import Path

from firsttouch.build.host_tools import DTC, find_tool, qemu_digest
from firsttouch.cli.options import Commands
from firsttouch.lab.here import guests_at_once
from firsttouch.lab.orders import make_guest_runner
from firsttouch.lab.share import open_share
from firsttouch.lab.worker import Worker
from firsttouch.progress import Reporter
from firsttouch.quantities import format_number_of

# Longer than a claim's lease: what a killed worker held is taken over before this one ends.
_IDLE = 120.0
# Seconds in which a signal to QEMU and all other processes of a job has reached this one, too.
_GRACE = 1.0


def add_command(commands: Commands) -> None:
    """Add `firsttouch worker`."""
    worker = commands.add_parser(
        "worker", help="run guests that `firsttouch lab --on SHARE` left in a shared directory"
    )
    worker.add_argument("share", type=Path, metavar="SHARE", help="the directory")
    worker.add_argument(
        "--jobs",
        type=int,
        metavar="N",
        help="guests at once (default: as many as CPUs and memory allow)",
    )
    worker.add_argument(
        "--idle",
        type=float,
        default=_IDLE,
        metavar="SECONDS",
        help=f"end after so long without a guest to run (default {_IDLE:.0f})",
    )
    worker.set_defaults(run=_run, kept="finished guests are in the share; others run the rest")


def _run(options: argparse.Namespace, reporter: Reporter) -> int:
    share = open_share(options.share)
    at_once = guests_at_once(options.jobs)
    find_tool(DTC)
    qemu_digest()
    host, stop = socket.gethostname(), threading.Event()
    reporter.say(
        f"{host} takes guests from {share.root}, {format_number_of(at_once, 'guests')} at once."
    )
    make = make_guest_runner(reporter)
    workers = [Worker(share, make, host, reporter.say, stop, _GRACE) for _ in range(at_once)]
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        running = [pool.submit(worker.work, options.idle) for worker in workers]
        try:
            for done in concurrent.futures.as_completed(running):
                done.result()
        finally:
            stop.set()
    ran = format_number_of(sum(worker.ran for worker in workers), "guests")
    reporter.say(f"{host} ran {ran}; the share has none left.")
    return 0
