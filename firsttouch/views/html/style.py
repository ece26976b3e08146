# SPDX-License-Identifier: GPL-2.0
"""Colours by day, by night and on paper, and the style sheets of the page and of its figures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from firsttouch.catalog.arms import Arm
from firsttouch.catalog.experiments import Catalog
from firsttouch.views.html.svg import Symbol, Symbols

_TEMPLATES = Path(__file__).parent / "templates"

Colors = Mapping[str, str]
_LIGHT: Colors = {
    "paper": "#fff", "ink": "#1b1f24", "dim": "#57606a", "rule": "#d0d7de", "field": "#f6f8fa",
    "link": "#0b5cad", "good": "#1a6b34", "bad": "#b3261e",
}  # fmt: skip
_DARK: Colors = {
    "paper": "#14171b", "ink": "#e4e7eb", "dim": "#9aa4af", "rule": "#363c44", "field": "#1d2127",
    "link": "#6cb2f5", "good": "#6fcf8b", "bad": "#ff8a80",
}  # fmt: skip


def symbols(catalog: Catalog, arms: Iterable[str]) -> Symbols:
    shown = {*arms}
    return {
        arm.name: Symbol(arm.mark.shape, arm.mark.filled, kind)
        for kind, arm in _arm_kinds(catalog)
        if arm.name in shown
    }


def _arm_kinds(catalog: Catalog) -> list[tuple[str, Arm]]:
    """Return a class for each arm: a number, because a name may not be a valid class."""
    ordered = sorted(catalog.arms, key=catalog.arm_order)
    return [(f"m-{place}", catalog.arms[name]) for place, name in enumerate(ordered, 1)]


def arm_style(catalog: Catalog) -> tuple[str, Colors, Colors]:
    """Return the rules of the arms' marks, and their colours on a light and a dark page.

    These are numbers and checked colours, which end no element.
    """
    kinds = _arm_kinds(catalog)
    rules = []
    for kind, arm in kinds:
        filled = f"fill: var(--{kind}); stroke-width: 0;"
        hollow = "fill: var(--paper); fill-opacity: .6;"
        rules.append(
            f".{kind} {{ stroke: var(--{kind}); {filled if arm.mark.filled else hollow} }}"
        )
    light = {kind: arm.mark.light for kind, arm in kinds}
    dark = {kind: arm.mark.dark for kind, arm in kinds}
    return "\n".join(rules), light, dark


def page_style(rules: str, light: Colors, dark: Colors) -> str:
    """Return the style sheet of a page; `rules` and their colours are added."""
    return "\n".join([
        _sheet("report.css"),
        _root({**_LIGHT, **light}),
        f"@media (prefers-color-scheme: dark) {{ {_root({**_DARK, **dark})} }}",
        f"@media print {{ {_root({**_LIGHT, **light})} }}",
        _sheet("figure.css"),
        rules,
    ])  # fmt: skip


def picture_style(shapes: str, rules: str, light: Colors, dark: Colors) -> str:
    """Return the style sheet of one figure that stands alone, whose elements are `shapes`.

    `rules` and their colours are added. It has only the rules that apply to them, so that a new
    arm changes no picture it is not in, and no variables, which viewers of pictures lack.
    """
    shapes += ' class="paper t strong dim"'
    used = {kind for kinds in re.findall(r'class="([^"]*)"', shapes) for kind in kinds.split()}
    # A comment would become part of the selector behind it.
    sheet = re.sub(r"/\*.*?\*/", "", _sheet("figure.css") + rules, flags=re.DOTALL)
    applied = [
        f"{selector.strip()} {{ {' '.join(body.split())} }}"
        for selector, body in re.findall(r"([^{}]+){([^{}]*)}", sheet)
        if set(selector.strip().removeprefix(".").split(".")) <= used
    ]
    by_day = [_resolved(rule, {**_LIGHT, **light}) for rule in applied]
    by_night = [_resolved(rule, {**_DARK, **dark}) for rule in applied if "var(" in rule]
    return "\n".join([*by_day, "@media (prefers-color-scheme: dark) {", *by_night, "}"])


def _sheet(name: str) -> str:
    return (_TEMPLATES / name).read_text("utf-8")


def _root(colors: Colors) -> str:
    return f":root {{ {' '.join(f'--{name}: {color};' for name, color in colors.items())} }}"


def _resolved(rule: str, colors: Colors) -> str:
    return re.sub(r"var\(--([\w-]+)\)", lambda match: colors[match[1]], rule)
