# SPDX-License-Identifier: GPL-2.0
"""The same survey inside a guest of the laboratory: its commands run there, the rest here."""

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Sequence
from pathlib import Path

from firsttouch.catalog.arms import Arm
from firsttouch.vm.guest import Guest
from firsttouch.build.images import KernelImage
from firsttouch.catalog.machines import Machine
from firsttouch.build.programs import build_program
from firsttouch.progress import Reporter
from firsttouch.build.sources import KernelSource
from firsttouch.survey.host import patterns, read_facts
from firsttouch.survey.tasks import counter_tasks, told, touch_tasks, zero_pages_task
from firsttouch.survey.samples import Line, Sample
from firsttouch.survey.run import Taken

# Every round gives the same counts but for the first: see Sample.
_ROUNDS = 3
_SIZE = 32 << 20
_WATCH_EVERY = 0.2
# What guest/init.c writes to the console before each command.
_SIGN_OF_LIFE = "init: command "


def take_in_guest(
    source: KernelSource, arm: Arm, machine: Machine, logs: Path, reporter: Reporter
) -> Taken:
    """Survey a guest with the kernel of `arm`; its clock counts instructions.

    A cache does not show in such a clock: what tells by time per read is
    left out. `logs` gets the guests' kernel logs. Raises GuestError and
    BuildError.
    """
    image = KernelImage(source, arm.changed).obtain(reporter) / "Image"
    ftbench, init = build_program("bench", reporter), build_program("guest", reporter)

    def guest(commands: Sequence[tuple[str, ...]]) -> Guest:
        return Guest(
            image,
            init,
            machine,
            arm.boot,
            tuple(" ".join(["/ftbench", *words]) for words in commands),
            {"/ftbench": ftbench},
        )

    log = logs / f"survey-{arm.name}.log"
    (shown,) = guest([("--files", *patterns(0))]).run(log)
    facts = read_facts(shown, 0)
    tasks = [*touch_tasks(facts, _SIZE), *counter_tasks(told(facts)), zero_pages_task()]
    order = [(task, number) for number in range(_ROUNDS + 1) for task in tasks]
    lines = _watched(guest([task.arguments for task, _ in order]), log, reporter)
    samples = [
        Sample(task.name, number, line) for (task, number), line in zip(order, lines, strict=True)
    ]
    where = {
        "kind": "guest",
        "arm": arm.name,
        "release": source.release.name,
        "machine": machine.name,
        "boot": " ".join(arm.boot),
    }
    return Taken(where, facts, tasks, samples, virtual_time=True)


def _watched(guest: Guest, log: Path, reporter: Reporter) -> list[Line]:
    """Run `guest` and show how many of its commands have begun."""
    stop = threading.Event()
    with (
        reporter.step("Surveying the guest", "commands", len(guest.commands)) as step,
        concurrent.futures.ThreadPoolExecutor(1) as pool,
    ):
        running = pool.submit(guest.run, log, stop=stop)
        try:
            while not concurrent.futures.wait([running], _WATCH_EVERY).done:
                if log.exists():
                    step.at(log.read_text(errors="replace").count(_SIGN_OF_LIFE))
        finally:
            # An interrupt ends the guest, so that the pool can end.
            stop.set()
        step.at(len(guest.commands))
        return running.result()
