# SPDX-License-Identifier: GPL-2.0
"""Writes and reads survey.json: the tasks, every sample, findings and conclusions.

docs/on-real-hardware.md describes its keys.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from firsttouch.files import write_atomically
from firsttouch.survey.advice import Sentence
from firsttouch.survey.findings import Findings
from firsttouch.survey.host import Host
from firsttouch.survey.samples import Sample, Survey, SurveyedGuest, read_line
from firsttouch.survey.tasks import Task
from firsttouch.tables import Json, Table, read_document
from firsttouch.typed import read

SCHEMA = 1


def write_survey(
    file: Path, survey: Survey, findings: Findings, sentences: Iterable[Sentence]
) -> None:
    """Write survey.json, with one sample per line."""
    # The document has the host under "facts".
    without_host = {key: value for key, value in asdict(findings).items() if key != "host"}
    document: dict[str, Json] = {
        "schema": SCHEMA,
        "taken": datetime.now(UTC).isoformat(timespec="seconds"),
        "where": _where(survey),
        "seconds": survey.seconds,
        "interrupted": survey.interrupted,
        "facts": asdict(survey.host),
        "tasks": {task.name: " ".join(["ftbench", *task.arguments]) for task in survey.tasks},
        "findings": without_host,
        "sentences": [asdict(sentence) for sentence in sentences],
    }
    text = json.dumps(document, indent=1).removesuffix("\n}")
    samples = ",\n".join(f"  {json.dumps(_sample(sample))}" for sample in survey.samples)
    write_atomically(file, f'{text},\n "samples": [\n{samples}\n ]\n}}\n')


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
    where = table.table("where")
    guest = None
    if where.choice("kind", ("machine", "guest")) == "guest":
        guest = read(where, SurveyedGuest)
    facts = table.table("facts")
    policies = facts.table("mthp").values_of(str)
    return Survey(
        read(facts, Host, strict=False, mthp={int(size): policies[size] for size in policies}),
        tuple(
            Task(name, tuple(command.split()[1:]))
            for name, command in table.table("tasks").values_of(str).items()
        ),
        tuple(_read_sample(entry) for entry in table.tables("samples")),
        guest,
        table.optional("seconds", int),
        table.take("interrupted", bool, False),
    )


def _read_sample(table: Table) -> Sample:
    printed = table.optional("line", dict)
    return Sample(
        table.take("task", str),
        table.take("round", int),
        None if printed is None else read_line(printed),
        table.optional("error", str),
    )


def _where(survey: Survey) -> dict[str, Json]:
    if survey.guest is None:
        return {"kind": "machine"}
    return {"kind": "guest", **asdict(survey.guest)}


def _sample(sample: Sample) -> dict[str, Json]:
    line = sample.line.printed if sample.line else None
    return {"task": sample.task, "round": sample.round, "line": line, "error": sample.error}
