# SPDX-License-Identifier: GPL-2.0
"""Arms: a kernel and the boot parameters that choose among its features."""

from __future__ import annotations

from dataclasses import dataclass

from firsttouch.errors import UserError, nearest


@dataclass(frozen=True)
class Arm:
    """A kernel, with linux/ laid over its source if `changed`, and how it is booted."""

    name: str
    changed: bool
    boot: tuple[str, ...]
    meaning: str


ARMS = {
    arm.name: arm
    for arm in (
        Arm("stock", False, (), "the distribution's source, untouched"),
        Arm(
            "off",
            True,
            ("zero_page_colors=off", "write_intent=off"),
            "both features built in and switched off: the cost of having them",
        ),
        Arm(
            "color",
            True,
            ("zero_page_colors=auto", "write_intent=off"),
            "colour zero pages alone",
        ),
        Arm(
            "color-l2",
            True,
            ("zero_page_colors=l2", "write_intent=off"),
            "colour zero pages alone, as many as the L2 has colours",
        ),
        Arm(
            "rmw",
            True,
            ("zero_page_colors=off", "write_intent=rmw"),
            "write-intent faults of atomic read-modify-writes alone, without load-exclusives",
        ),
        Arm(
            "intent",
            True,
            ("zero_page_colors=off", "write_intent=exclusive"),
            "write-intent faults alone",
        ),
        Arm(
            "on",
            True,
            ("zero_page_colors=auto", "write_intent=exclusive"),
            "both features",
        ),
    )
}


def find_arm(name: str) -> Arm:
    """Return arm `name`; UserError if there is none."""
    if name not in ARMS:
        raise UserError(f"unknown arm {name!r}: {nearest(name, ARMS)}")
    return ARMS[name]
