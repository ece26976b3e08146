# SPDX-License-Identifier: GPL-2.0
"""Changes between arms, and verdicts on published figures."""

from __future__ import annotations

from firsttouch.catalog.experiments import Published

# Of a published time: instructions are not time, and a guest's clock counts instructions.
NOT_JUDGED = "cannot be judged by counts"


def change_percent(base: float | None, other: float | None) -> float | None:
    """Return by how many per cent `other` differs from `base`; None if that is undefined."""
    if base is None or other is None:
        return None
    if base == 0:
        return 0.0 if other == 0 else None
    return round(100 * (other - base) / base, 4)


def verdict(claim: Published | None, change: float | None) -> str:
    """Return the verdict on a published claim.

    ``exceeded`` means that the change goes further in the claimed direction
    than the tolerance allows. Without a measured change the verdict is
    ``no claim``. A time is not judged.
    """
    if claim is None or change is None:
        return "no claim"
    if claim.time:
        return NOT_JUDGED
    if claim.at_most is not None:
        return "reproduced" if change <= claim.at_most else "not reproduced"
    assert claim.change is not None
    if abs(change - claim.change) <= claim.tolerance:
        return "reproduced"
    further = change < claim.change if claim.change < 0 else change > claim.change
    return "exceeded" if further and claim.change else "not reproduced"
