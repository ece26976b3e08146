# SPDX-License-Identifier: GPL-2.0
"""A survey of a guest of the laboratory: the tasks run in the guest, the analysis here."""

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

from firsttouch.building.kernels import obtain_image
from firsttouch.building.programs import build_ftbench, build_init
from firsttouch.building.sources import KernelSource
from firsttouch.catalog.arms import Arm
from firsttouch.catalog.experiments import Experiment
from firsttouch.catalog.machines import Machine
from firsttouch.lab.outcomes import printed_objects
from firsttouch.progress import Reporter
from firsttouch.survey.host import host_files, read_host
from firsttouch.survey.samples import Line, Sample, Survey, SurveyedGuest, read_line
from firsttouch.survey.tasks import (
    counter_tasks,
    operation_tasks,
    touch_tasks,
    zero_pages_task,
)
from firsttouch.vm.guest import Guest, port_for
from firsttouch.vm.supervision import run_guest

# All rounds after the first give the same counts; see Sample.
_ROUNDS = 3
_SIZE = 32 << 20
_WATCH_EVERY = 0.2
# What guest/init.c writes to the console before each command.
_COMMAND_BEGINS = "init: command "


def survey_guest(
    source: KernelSource,
    arm: Arm,
    machine: Machine,
    logs: Path,
    reporter: Reporter,
    experiments: Iterable[Experiment] = (),
) -> Survey:
    """Survey a guest with the kernel of `arm`, and with the operations of `experiments`.

    The guest's clock counts instructions.

    Caches have no effect on it, so tasks that need the time of a read
    are left out. The guest's kernel log goes to `logs`. Raises GuestError and
    BuildError.
    """
    image = obtain_image(arm.kernel, source, reporter)
    boot = machine.boot_words(arm.boot)
    ftbench, init = build_ftbench(reporter), build_init(reporter)

    def guest(commands: Sequence[tuple[str, ...]]) -> Guest:
        return Guest(
            image,
            init,
            machine,
            boot,
            tuple(" ".join(["/ftbench", *words]) for words in commands),
            {"/ftbench": ftbench},
            port=port_for(arm.kernel),
        )

    log = logs / f"survey-{arm.name}.log"
    (files,) = run_guest(guest([("--files", *host_files(0))]), log).commands
    host = read_host(printed_objects(0, files, log)[0], 0)
    tasks = [
        *touch_tasks(host, _SIZE),
        *counter_tasks(host.geometries),
        zero_pages_task(),
        *operation_tasks(experiments),
    ]
    order = [(task, number) for number in range(_ROUNDS + 1) for task in tasks]
    lines = _watched(guest([task.arguments for task, _ in order]), log, reporter)
    samples = tuple(
        Sample(task.name, number, line) for (task, number), line in zip(order, lines, strict=True)
    )
    surveyed = SurveyedGuest(arm.name, source.release.name, machine.name, " ".join(boot))
    return Survey(host, tuple(tasks), samples, surveyed)


def _watched(guest: Guest, log: Path, reporter: Reporter) -> list[Line]:
    """Run `guest` and show how many of its commands have begun."""
    stop = threading.Event()
    with (
        reporter.step("Surveying the guest", "commands", len(guest.commands)) as step,
        concurrent.futures.ThreadPoolExecutor(1) as pool,
    ):
        running = pool.submit(run_guest, guest, log, stop=stop)
        try:
            while not concurrent.futures.wait([running], _WATCH_EVERY).done:
                if log.exists():
                    step.at(log.read_text(errors="replace").count(_COMMAND_BEGINS))
        finally:
            # After an interrupt the guest must end before the pool can.
            stop.set()
        step.at(len(guest.commands))
        return [
            read_line(printed)
            for number, done in enumerate(running.result().commands)
            for printed in printed_objects(number, done, log)
        ]
