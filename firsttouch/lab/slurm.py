# SPDX-License-Identifier: GPL-2.0
"""Guests as an array of Slurm: task i of N runs every N-th missing guest into the common store.

Account, time and other limits are those of the partition, or of Slurm's own
variables (SBATCH_ACCOUNT, SBATCH_TIMELIMIT). A task that fails, or a guest that
fails in it, costs nothing but time: whatever is missing at the end runs here.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from firsttouch.building.store import outcome_place
from firsttouch.errors import HostError, UserError
from firsttouch.lab.plan import TASK
from firsttouch.progress import Reporter
from firsttouch.quantities import format_number_of
from firsttouch.vm.guest import MEMORY

_T = TypeVar("_T")
# Bytes: a guest, and QEMU's translated code.
_GUEST_MEMORY = MEMORY + (1 << 30)
# Each task takes seconds to begin.
_MOST_TASKS = 64
# Seconds between two looks at which outcomes the store has.
_POLL = 1.0


def check_slurm() -> None:
    if shutil.which("sbatch") is None:
        raise UserError(
            "--on slurm needs Slurm's commands, and sbatch is not on PATH: run this on a front "
            "end of the cluster."
        )


def run_on_nodes(
    keys: Collection[str], partition: str, argv: Sequence[str], logs: Path, reporter: Reporter
) -> None:
    """Run the guests with these keys as an array of the command `argv`, and wait for its end.

    Without a name the `partition` is Slurm's default. `logs` gets what the tasks print. Raises
    HostError if Slurm refuses the array. An interrupt cancels it.
    """
    tasks = min(len(keys), _MOST_TASKS)
    logs.mkdir(parents=True, exist_ok=True)
    share = logs.absolute() / "guests"
    share.write_text("\n".join(keys))
    # Of an option that is given twice, the last counts.
    more = ["--jobs", "1", "--on", f"{TASK}:{share}"]
    task = [sys.executable, "-m", "firsttouch", *argv, *more]
    submit = [
        "sbatch", "--wait", "--parsable", "--job-name=firsttouch", f"--array=0-{tasks - 1}",
        "--ntasks=1", "--cpus-per-task=1", f"--mem={_GUEST_MEMORY >> 20}M",
        *[f"--partition={partition}"] * bool(partition),
        f"--output={str(share.parent).replace('%', '%%')}/%A-%a.log",
        "--wrap", f"exec {shlex.join(task)}",
    ]  # fmt: skip
    with subprocess.Popen(
        submit, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as waiting:
        assert waiting.stdout is not None and waiting.stderr is not None
        job = waiting.stdout.readline().strip().partition(";")[0]
        if not job:
            raise HostError(
                "Slurm refuses the array of guests: see below; SBATCH_ACCOUNT, SBATCH_QOS and "
                "SBATCH_TIMELIMIT set the limits that the partition needs.",
                waiting.stderr.read().splitlines(),
            )
        reporter.say(
            f"Slurm job {job}: {format_number_of(tasks, 'tasks')}, logs in {logs}; Ctrl-C cancels "
            "it."
        )
        try:
            with reporter.step("Running on nodes", "guests", len(keys)) as step:
                while waiting.poll() is None:
                    time.sleep(_POLL)
                    step.at(sum(outcome_place(key).exists() for key in keys))
        except BaseException:
            waiting.kill()
            subprocess.run(["scancel", "--quiet", job], check=False)
            raise


def share_of_task(share: Path, guests: Mapping[str, _T]) -> dict[str, _T]:
    """Return every N-th of the guests in the file `share`, as this task of Slurm is to run them."""
    try:
        number, count = (int(os.environ[f"SLURM_ARRAY_TASK_{name}"]) for name in ("ID", "COUNT"))
        keys: Sequence[str] = share.read_text().split()[number::count]
    except (KeyError, OSError, ValueError):
        raise UserError(
            f"--on {TASK}:{share} is for the tasks of `firsttouch lab --on slurm`: give that."
        ) from None
    if not guests.keys() >= set(keys):
        raise HostError(
            "this node makes other guests than the front end: install the same QEMU, dtc, "
            "compilers and firsttouch on both; `firsttouch doctor` lists them."
        )
    return {key: guests[key] for key in keys}
