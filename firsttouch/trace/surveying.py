# SPDX-License-Identifier: GPL-2.0
"""The part of a survey that prices faults, for a trace whose directory has no survey."""

from __future__ import annotations

from pathlib import Path

from firsttouch.building.store import Entry
from firsttouch.errors import FirsttouchError
from firsttouch.files import write_atomically
from firsttouch.lab.results import FILE_NAME, SCHEMA, timings_in
from firsttouch.progress import Reporter
from firsttouch.survey.document import write_survey
from firsttouch.survey.run import PRICES as TASKS
from firsttouch.survey.run import survey_host
from firsttouch.trace.prices import PRICES

# What nobody asked for takes no longer.
_SECONDS = 3
_BOOT = Path("/proc/sys/kernel/random/boot_id")


def provide_prices(directory: Path, reporter: Reporter, *, asked: bool) -> None:
    """Write what faults cost on this host beside a trace if `asked`, unless a survey is there.

    It is measured once for each boot, and cached in the store. Without it there are no
    times: the reason is printed.
    """
    (directory / PRICES).unlink(missing_ok=True)
    if not asked or "host" in timings_in(directory):
        return

    def make(_workplace: Path, product: Path) -> None:
        reporter.say(
            f"Surveying for {_SECONDS} s what a fault costs here, once until the next boot "
            "(--no-survey leaves it out)"
        )
        survey = survey_host(_SECONDS, reporter, lambda task, _: task.name in TASKS)
        write_survey(product, survey)

    try:
        boot = _BOOT.read_text().strip()
        entry = Entry("surveys", {"boot": boot, "schema": SCHEMA}, f"prices of faults, boot {boot}")
        stored = entry.obtain(make, reporter.say)
        write_atomically(directory / PRICES, (stored / FILE_NAME).read_text())
    except (FirsttouchError, OSError) as error:
        reporter.say(f"No time of faults: {error}")
    except KeyboardInterrupt:
        reporter.say("Interrupted: no time of faults.")
