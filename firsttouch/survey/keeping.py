# SPDX-License-Identifier: GPL-2.0
"""Where a survey is kept: a directory for one survey at a time, and a file that is whole."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from firsttouch.errors import FirsttouchError, HostError, UserError
from firsttouch.files import check_writable
from firsttouch.survey.advice import Sentence
from firsttouch.survey.document import write_survey
from firsttouch.survey.findings import Findings
from firsttouch.survey.samples import Survey


class SurveyInterruptedError(FirsttouchError):
    """The user ended a survey before it had measured anything that can be kept."""

    exit_status = 130


@contextmanager
def claimed(directory: Path) -> Iterator[None]:
    """Keep other surveys out of `directory`, which is made if need be.

    Raises HostError if no file can be written there, UserError if another
    survey is under way there. The claim ends with the process.
    """
    check_writable(directory)
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"another survey is under way and writes to {directory}: wait until it ends, "
                "or name another directory by --out."
            ) from None
        except OSError:
            # A file system without locks, such as some shares.
            pass
        yield
    finally:
        os.close(handle)


def keep_survey(
    file: Path, survey: Survey, findings: Findings, sentences: Iterable[Sentence]
) -> None:
    """Write survey.json; HostError if it cannot be written."""
    try:
        write_survey(file, survey, findings, sentences)
    except OSError as error:
        raise HostError(
            f"cannot write {file} ({error.strerror}): the figures were printed and their samples "
            "are lost; make room, or name another directory by --out, and survey again."
        ) from None
