# SPDX-License-Identifier: GPL-2.0
"""Writes and reads survey.json: the tasks, every sample, findings and conclusions.

docs/on-real-hardware.md describes its keys.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from firsttouch.files import write_atomically
from firsttouch.survey.findings import examine
from firsttouch.survey.host import Host
from firsttouch.survey.samples import Sample, Survey
from firsttouch.survey.sentences import conclude
from firsttouch.survey.tasks import Task
from firsttouch.tables import Json, read, read_document

SCHEMA = 2


def write_survey(file: Path, survey: Survey) -> None:
    """Write survey.json, with one sample per line."""
    findings = examine(survey)
    document: dict[str, Json] = {
        "schema": SCHEMA,
        "taken": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": survey.seconds,
        "interrupted": survey.interrupted,
        "host": asdict(survey.host),
        "tasks": {task.name: " ".join(["ftbench", *task.arguments]) for task in survey.tasks},
        # The host is above.
        "findings": {key: value for key, value in asdict(findings).items() if key != "host"},
        "sentences": [asdict(sentence) for sentence in conclude(findings)],
    }
    text = json.dumps(document, indent=1).removesuffix("\n}")
    samples = ",\n".join(f"  {json.dumps(_sample(sample))}" for sample in survey.samples)
    write_atomically(file, f'{text},\n "samples": [\n{samples}\n ]\n}}\n')


def _sample(sample: Sample) -> dict[str, Json]:
    return {key: value for key, value in asdict(sample).items() if value or key == "round"}


def read_survey(file: Path) -> Survey:
    """Return the survey in a survey.json; `examine` derives the findings from its samples.

    Raises UserError if the file cannot be read or is not a survey.
    """
    table = read_document(file, "survey", "give what `firsttouch survey` wrote, or survey again")
    schema = table.take("schema", int)
    if schema != SCHEMA:
        raise table.error(
            "schema",
            f"is {schema}, but this firsttouch reads {SCHEMA}: survey again, or read the file with "
            "the version that wrote it.",
        )
    return Survey(
        read(table.table("host"), Host, strict=False),
        tuple(
            Task(name, tuple(command.split()[1:]))
            for name, command in table.table("tasks").values_of(str).items()
        ),
        tuple(read(sample, Sample, strict=False) for sample in table.tables("samples")),
        table.take("seconds", int),
        table.take("interrupted", bool, False),
    )
