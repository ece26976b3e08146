# SPDX-License-Identifier: GPL-2.0
"""Changes between arms, and verdicts on published figures."""

from __future__ import annotations

from firsttouch.catalog.experiments import Published

# Of a published time: instructions are not time, and a guest's clock counts instructions.
NOT_JUDGED = "cannot be judged by counts"
# Of a change that no published figure is about.
NOT_PUBLISHED = "no claim"


def change_percent(base: float | None, other: float | None) -> float | None:
    """Return by how many per cent `other` differs from `base`; None if that is undefined."""
    if base is None or other is None:
        return None
    if base == 0:
        return 0.0 if other == 0 else None
    return round(100 * (other - base) / base, 4)


def verdict(published: Published | None, change: float | None) -> str:
    """Return the verdict on a published figure.

    ``exceeded`` means that the change goes further in the published direction
    than the tolerance allows. Without a measured change the verdict is
    NOT_PUBLISHED. A time is not judged.
    """
    if published is None or change is None:
        return NOT_PUBLISHED
    if published.time:
        return NOT_JUDGED
    if published.at_most is not None:
        return "reproduced" if change <= published.at_most else "not reproduced"
    assert published.change is not None
    if abs(change - published.change) <= published.tolerance:
        return "reproduced"
    further = change < published.change if published.change < 0 else change > published.change
    return "exceeded" if further and published.change else "not reproduced"
