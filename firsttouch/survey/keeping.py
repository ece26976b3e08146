# SPDX-License-Identifier: GPL-2.0
"""Writes a survey's file, and allows one survey at a time in a directory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from firsttouch.building.locks import NoLocksError, locked_if_free
from firsttouch.errors import FirsttouchError, HostError, UserError
from firsttouch.files import check_writable
from firsttouch.survey.advice import Sentence
from firsttouch.survey.document import write_survey
from firsttouch.survey.findings import Findings
from firsttouch.survey.samples import Survey


class SurveyInterruptedError(FirsttouchError):
    """The user ended a survey before there was anything to keep."""

    exit_status = 130


@contextmanager
def claimed(directory: Path) -> Iterator[None]:
    """Keep other surveys out of `directory` while the context lasts; make it if it is missing.

    Raises HostError if no file can be written there, UserError if another
    survey is running there.
    """
    check_writable(directory)
    with ExitStack() as stack:
        try:
            free = stack.enter_context(locked_if_free(directory / ".survey.lock"))
        except NoLocksError:
            free = True
        if not free:
            raise UserError(
                f"another survey is running and writes to {directory}: wait until it ends, "
                "or name another directory by --out."
            )
        yield


def keep_survey(
    file: Path, survey: Survey, findings: Findings, sentences: Iterable[Sentence]
) -> None:
    """Write survey.json; HostError if it cannot be written."""
    try:
        write_survey(file, survey, findings, sentences)
    except OSError as error:
        raise HostError(
            f"cannot write {file} ({error.strerror}), so the samples are lost: "
            "free some space, or name another directory by --out, and survey again."
        ) from None
