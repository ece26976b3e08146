# SPDX-License-Identifier: GPL-2.0
"""A survey as results.jsonl has it: a line for each task, with the timing ``host``."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path

from firsttouch.errors import UserError
from firsttouch.files import digest
from firsttouch.lab.results import Provenance, Result, read_results
from firsttouch.lab.results import write_results as write
from firsttouch.survey.tasks import SETTLE, Sample, Survey, Task, all_tasks
from firsttouch.tables import Fields, read

_INTERRUPTED = "The survey was interrupted."


def write_survey(directory: Path, survey: Survey) -> None:
    """Replace the survey in `directory`/results.jsonl."""
    write(directory, [_result(task, survey) for task in survey.tasks], "host")


def _result(task: Task, survey: Survey) -> Result:
    cell = task.cell(survey.host)
    lines = []
    for sample in survey.samples:
        if sample.task == task.name:
            line = {key: value for key, value in asdict(sample).items() if value}
            del line["task"]
            lines.append({"round": 0, **line})
    made = Provenance(
        survey.host.kernel,
        qemu="",
        compiler="",
        digests={"ftbench": survey.ftbench},
        boot="",
        commands=(shlex.join(["ftbench", *task.arguments]),),
        command=cell.command(),
        host=survey.host,
        disturbed=(_INTERRUPTED,) * survey.interrupted,
    )
    key = digest([survey.ftbench, survey.host.processor, survey.host.kernel, cell.identity])
    return Result(key, cell, tuple(lines), None, made)


def read_survey(place: Path) -> Survey:
    """Return the survey in a directory or file of results; UserError if it has none."""
    results = read_results(place, "host")
    host = results[0].provenance.host if results else None
    if host is None:
        raise UserError(f"{place} has no survey: give a directory of `firsttouch survey --out`.")
    known = [task for task in all_tasks(host) if not task.name.startswith(SETTLE)]
    names = {task.cell(host).identity: task for task in known}
    tasks, samples = [], []
    for result in results:
        task = names.get(result.cell.identity)
        if task is not None:
            tasks.append(task)
            for line in result.lines:
                table = Fields(f"the result of {result.cell.title}", line)
                samples.append(read(table, Sample, strict=False, task=task.name))
    made = results[0].provenance
    return Survey(host, tuple(tasks), tuple(samples), made.digests["ftbench"], bool(made.disturbed))
