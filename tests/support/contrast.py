# SPDX-License-Identifier: GPL-2.0
"""How two colours stand out from each other, as WCAG 2 defines it."""

import re


def luminance(color: str) -> float:
    """Return the relative luminance, 0 to 1, of ``rgb(r, g, b)`` or ``#rrggbb``."""
    parts = (
        [int(part, 16) for part in re.findall("..", color[1:])]
        if color.startswith("#")
        else [int(part) for part in re.findall(r"\d+", color)]
    )
    shares = [part / 255 for part in parts[:3]]
    red, green, blue = (
        share / 12.92 if share <= 0.03928 else ((share + 0.055) / 1.055) ** 2.4 for share in shares
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(first: str, second: str) -> float:
    """Return the contrast of two colours, 1 to 21."""
    dark, light = sorted((luminance(first), luminance(second)))
    return (light + 0.05) / (dark + 0.05)
