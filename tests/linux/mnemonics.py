# SPDX-License-Identifier: GPL-2.0
"""Every A64 instruction whose read announces a write: tests/data/mnemonics.toml."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from itertools import product

from firsttouch.files import REPOSITORY

_SHAPES = tomllib.loads((REPOSITORY / "tests/data/mnemonics.toml").read_text())


class Intent(IntEnum):
    """Whether an instruction writes what it reads. A load-exclusive leaves it to another."""

    NONE = 0
    RMW = 1
    EXCLUSIVE = 2


@dataclass(frozen=True)
class Form:
    """A mnemonic and its operands; `prefix` is what a data register's name begins with."""

    mnemonic: str
    operands: str
    intent: Intent
    prefix: str
    even: bool
    zero: bool


def forms() -> list[Form]:
    """Every mnemonic, size, ordering and alias."""
    return [
        Form(name, shape["operands"], intent, prefix,
             shape.get("even", False), shape.get("zero", True))
        for intent in (Intent.RMW, Intent.EXCLUSIVE)
        for shape in _SHAPES[intent.name.lower()]
        for prefix in "wxhsd"
        for names in shape.get(prefix, [])
        for name in _expanded(names)
    ]  # fmt: skip


def _expanded(names: str) -> Iterator[str]:
    parts = re.split(r"\{(.*?)\}", names)
    return map("".join, product(*(part.split(",") for part in parts)))


def kinds() -> dict[str, Intent]:
    """What each mnemonic stands for; every other mnemonic stands for NONE."""
    return {form.mnemonic: form.intent for form in forms()}


def of_kernel(intent: Intent) -> Intent:
    """What the kernel makes of it: nothing of a load-exclusive, which need not be followed."""
    return Intent.RMW if intent is Intent.RMW else Intent.NONE


def _register(prefix: str, number: int) -> str:
    return f"{prefix}zr" if number == 31 and prefix in "wx" else f"{prefix}{number}"


def _numbers(form: Form) -> tuple[int, ...]:
    if form.even:
        return (0, 14, 30)
    return (0, 15, 30, 31) if form.zero else (0, 15, 30)


def lines(form: Form) -> Iterator[str]:
    """The instruction with its register fields at their ends and in their middle."""
    for s, t, n in product(_numbers(form), _numbers(form), ("x0", "x16", "x30", "sp")):
        if not form.zero and s == t:
            continue  # assemblers refuse a pair of the same register
        if form.mnemonic.startswith(("ldxp", "ldaxp")) and s == t:
            continue
        yield f"{form.mnemonic} " + form.operands.format(
            s=_register(form.prefix, s),
            s1=_register(form.prefix, s + 1),
            t=_register(form.prefix, t),
            t1=_register(form.prefix, t + 1),
            n=n,
        )
