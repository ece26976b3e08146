# SPDX-License-Identifier: GPL-2.0
"""`firsttouch trace --try N`: a remedy that the environment can apply, predicted and measured."""

from __future__ import annotations

from collections.abc import Mapping

from firsttouch.errors import UserError
from firsttouch.finder.sites import Trace
from firsttouch.trace.advice import Advice, advise, assignments

# Variables that hold a list of settings, and what stands between these.
_LISTS = {"GLIBC_TUNABLES": ":", "MALLOC_CONF": ",", "JAVA_TOOL_OPTIONS": " ", "GODEBUG": ","}


def remedy_to_try(trace: Trace, number: int) -> Advice:
    """Return remedy `number` of those that a variable applies; UserError if there is none."""
    can = [advice for advice in advise(trace) if advice.environment]
    if number <= len(can):
        return can[number - 1]
    if can:
        raise UserError(
            f"--try {number}: the environment can apply {len(can)} of the remedies: --try 1."
        )
    raise UserError(
        "--try: the environment can apply no remedy of this program: apply another, trace into "
        "another --out, and set both side by side by `firsttouch compare`."
    )


def with_remedy(environment: Mapping[str, str], before: Mapping[str, str]) -> dict[str, str]:
    """Return variables for the command, behind what `before` has in such a list."""
    return {
        name: f"{before[name]}{_LISTS[name]}{value}"
        if name in _LISTS and before.get(name)
        else value
        for name, value in environment.items()
    }


def predicted_and_measured(before: Trace, advice: Advice, after: Trace) -> str:
    """Return what a remedy did, beside what was predicted."""
    predicted = before.faults - advice.remedy.saved
    off = 100 * (after.faults - predicted) / predicted if predicted else 0.0
    return (
        f"\nTried {assignments(advice.environment)}: {before.faults:,} page faults without it, "
        f"{predicted:,} predicted, {after.faults:,} measured ({off:+.1f} % of the prediction)."
    )
