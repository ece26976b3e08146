# SPDX-License-Identifier: GPL-2.0
"""survey.json: all that was run, every sample, what was found and concluded."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from firsttouch.build.store import write_atomically
from firsttouch.survey.findings import Findings
from firsttouch.survey.sentences import Sentence
from firsttouch.survey.run import Taken

SCHEMA = 1


def document(taken: Taken, findings: Findings, sentences: list[Sentence]) -> dict[str, Any]:
    """Return the survey as survey.json has it; docs/on-real-hardware.md gives the keys."""
    found = asdict(findings)
    del found["facts"]
    return {
        "schema": SCHEMA,
        "taken": datetime.now(UTC).isoformat(timespec="seconds"),
        "where": taken.where,
        "facts": asdict(taken.facts),
        "tasks": {task.name: " ".join(["ftbench", *task.arguments]) for task in taken.tasks},
        "samples": [asdict(sample) for sample in taken.samples],
        "findings": found,
        "sentences": [asdict(sentence) for sentence in sentences],
    }


def write_survey(file: Path, survey: dict[str, Any]) -> None:
    """Write survey.json; the samples, which are many, one a line."""
    samples = ",\n".join(f"  {json.dumps(sample)}" for sample in survey["samples"])
    rest = {key: value for key, value in survey.items() if key != "samples"}
    text = json.dumps(rest, indent=1).removesuffix("\n}")
    write_atomically(file, f'{text},\n "samples": [\n{samples}\n ]\n}}\n')
