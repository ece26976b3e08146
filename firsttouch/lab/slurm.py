# SPDX-License-Identifier: GPL-2.0
"""Slurm's commands: partitions, and the tasks of arrays that live."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from firsttouch.errors import HostError, UserError, nearest
from firsttouch.processes import output
from firsttouch.vm.guest import MEMORY

# Bytes: a guest, and QEMU's translated code.
_GUEST_MEMORY = MEMORY + (1 << 30)
_TASK = "%F|%T|%r|%N"
_PARTITION = "%P|%C|%m"


@dataclass(frozen=True)
class Partition:
    """A partition: `option` is what names it to sbatch; CPUs in service, bytes of a node.

    `largest` is how many tasks an array may have.
    """

    option: tuple[str, ...]
    cpus: int
    memory: int
    largest: int

    def guest_options(self) -> tuple[str, ...]:
        """Return the options of sbatch for a job that runs one guest at a time."""
        # Slurm takes a node whose memory it was not told for one of 1 MiB.
        knows_memory = self.memory >= _GUEST_MEMORY
        memory = (f"--mem={_GUEST_MEMORY >> 20}M",) if knows_memory else ()
        return (*self.option, "--ntasks=1", "--cpus-per-task=1", *memory)

    def build_options(self) -> tuple[str, ...]:
        """Return the options of sbatch for a job that builds a kernel with all CPUs of a node."""
        return (*self.option, "--ntasks=1", "--exclusive", "--mem=0")


@dataclass(frozen=True)
class Task:
    """A task of an array that has not ended; `reason` is why it waits, `node` where it runs."""

    job: str
    state: str
    reason: str
    node: str


def find_partition(name: str) -> Partition:
    """Return the partition called `name`, or the default one if it is empty.

    Raises UserError if there is no Slurm or no such partition, HostError if it does not answer.
    """
    if shutil.which("sbatch") is None:
        raise UserError(
            "--on slurm needs Slurm's commands, and sbatch is not on PATH: run this on a front end "
            "of the cluster, or run the same command with --join on each host (docs/many-hosts.md)."
        )
    lines = [line.split("|") for line in output(["sinfo", "-h", "-o", _PARTITION]).splitlines()]
    partitions = {line[0].rstrip("*") for line in lines}
    nodes = [line for line in lines if line[0] in ({name, f"{name}*"} if name else ())]
    if name and not nodes:
        raise UserError(f"--on slurm:{name}: no such partition; {nearest(name, partitions)}")
    nodes = nodes or [line for line in lines if line[0].endswith("*")]
    if not nodes:
        names = ", ".join(sorted(partitions))
        raise UserError(f"Slurm has no default partition: name one by --on slurm:NAME ({names}).")
    # Allocated, idle, other and all CPUs. Several lines are nodes of different kinds.
    cpus = sum(sum(map(int, line[1].split("/")[:2])) for line in nodes)
    memory = min(int(line[2].rstrip("+")) << 20 for line in nodes)
    largest = re.search(r"^MaxArraySize\s*=\s*(\d+)", output(["scontrol", "show", "config"]), re.M)
    if largest is None:
        raise HostError("scontrol names no MaxArraySize: this version of Slurm is not known.")
    option = (f"--partition={name}",) if name else ()
    return Partition(option, cpus, memory, int(largest[1]))


def live_tasks(name: str) -> list[Task] | None:
    """Return this user's tasks with a job of this name; None if the controller does not answer."""
    user = str(os.getuid())
    try:
        printed = output(["squeue", "-h", "-r", "-u", user, "-n", name, "-o", _TASK])
    except HostError:
        return None
    return [Task(*line.split("|")) for line in printed.splitlines() if line.count("|") == 3]


def describe(tasks: Sequence[Task]) -> str:
    """Return in words what tasks do: how many run, and how many wait for which reason."""
    waiting = Counter(task.reason for task in tasks if task.state == "PENDING")
    run = len(tasks) - waiting.total()
    parts = [f"{run} run"] * bool(run)
    parts += [f"{number} wait ({reason})" for reason, number in sorted(waiting.items())]
    return ", ".join(parts)


def firsttouch_command(*words: str | Path) -> str:
    """Return the shell's words for a command of this firsttouch."""
    return shlex.join([sys.executable, "-m", "firsttouch", *map(str, words)])
