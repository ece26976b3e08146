# SPDX-License-Identifier: GPL-2.0
"""survey.json: all that was run, every sample, the findings and the conclusions.

docs/on-real-hardware.md describes its keys.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from firsttouch.files import write_atomically
from firsttouch.survey.findings import Findings
from firsttouch.survey.samples import Sample, Survey
from firsttouch.survey.sentences import Sentence
from firsttouch.tables import Json

SCHEMA = 1


def write_survey(
    file: Path, survey: Survey, findings: Findings, sentences: Iterable[Sentence]
) -> None:
    """Write survey.json; the samples, of which there are many, one a line."""
    found = asdict(findings)
    # It is there already, under its own key.
    del found["host"]
    document: dict[str, Json] = {
        "schema": SCHEMA,
        "taken": datetime.now(UTC).isoformat(timespec="seconds"),
        "where": _where(survey),
        "facts": asdict(survey.host),
        "tasks": {task.name: " ".join(["ftbench", *task.arguments]) for task in survey.tasks},
        "findings": found,
        "sentences": [asdict(sentence) for sentence in sentences],
    }
    text = json.dumps(document, indent=1).removesuffix("\n}")
    samples = ",\n".join(f"  {json.dumps(_sample(sample))}" for sample in survey.samples)
    write_atomically(file, f'{text},\n "samples": [\n{samples}\n ]\n}}\n')


def _where(survey: Survey) -> dict[str, Json]:
    if survey.guest is None:
        return {"kind": "machine"}
    return {"kind": "guest", **asdict(survey.guest)}


def _sample(sample: Sample) -> dict[str, Json]:
    line = sample.line.printed if sample.line else None
    return {"task": sample.task, "round": sample.round, "line": line, "error": sample.error}
