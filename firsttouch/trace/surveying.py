# SPDX-License-Identifier: GPL-2.0
"""The part of a survey that prices faults, for a trace whose directory has no survey."""

from __future__ import annotations

from pathlib import Path

from firsttouch.building.store import store_root
from firsttouch.catalog.processors import processor_name
from firsttouch.errors import FirsttouchError
from firsttouch.files import write_atomically
from firsttouch.progress import Reporter
from firsttouch.survey.document import write_survey
from firsttouch.survey.findings import examine
from firsttouch.survey.on_host import survey_touches
from firsttouch.trace.prices import PRICES, SURVEY

# What nobody asked for takes no longer.
_SECONDS = 3
_BOOT = Path("/proc/sys/kernel/random/boot_id")


def provide_prices(directory: Path, reporter: Reporter, *, asked: bool) -> None:
    """Put what faults cost on this host beside a trace if `asked`, unless a survey is there.

    It is measured once for each boot, and kept in the store. Without it there are no
    times: the reason is said.
    """
    (directory / PRICES).unlink(missing_ok=True)
    if not asked or (directory / SURVEY).is_file():
        return
    try:
        survey_file = store_root() / "surveys" / f"{_BOOT.read_text().strip()}.json"
        if not survey_file.is_file():
            reporter.say(
                f"Surveying for {_SECONDS} s what a fault costs here, once until the next boot "
                "(--no-survey leaves it out)"
            )
            survey = survey_touches(_SECONDS, reporter)
            survey_file.parent.mkdir(parents=True, exist_ok=True)
            write_survey(survey_file, survey, examine(survey), ())
        write_atomically(directory / PRICES, survey_file.read_text())
    except (FirsttouchError, OSError) as error:
        reporter.say(f"No time of faults: {error}")
    except KeyboardInterrupt:
        reporter.say("Interrupted: no time of faults.")


def this_processor() -> str:
    """Return the name of this host's CPU as a survey has it; "" if it cannot be read."""
    try:
        return processor_name(Path("/proc/cpuinfo").read_text(errors="replace"))
    except OSError:
        return ""
