# SPDX-License-Identifier: GPL-2.0
"""Every A64 instruction whose read announces a write, as assembler text.

Written from the instruction set's pages (Arm DDI 0602), not from the decoder: the two are
compared by way of an assembler and disassemblers.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from itertools import product


class Intent(IntEnum):
    """Whether an instruction writes what it reads. A load-exclusive leaves it to another."""

    NONE = 0
    RMW = 1
    EXCLUSIVE = 2


@dataclass(frozen=True)
class Form:
    """A mnemonic and its operands; s, t and u stand for registers, n for the base register."""

    mnemonic: str
    operands: str
    intent: Intent
    prefix: str = "x"
    """What a data register's name begins with."""
    even: bool = False
    """Data registers name pairs: even numbers only."""
    zero: bool = True
    """Number 31, the zero register, may be named."""


ORDERS = ("", "a", "l", "al")
LSE_OPERATIONS = ("add", "clr", "eor", "set", "smax", "smin", "umax", "umin")
LSFE_OPERATIONS = ("fadd", "fmax", "fmin", "fmaxnm", "fminnm")
RMW = Intent.RMW
EXCLUSIVE = Intent.EXCLUSIVE


def _sized() -> Iterator[tuple[str, str]]:
    """Suffix and register prefix of the four sizes of an integer access."""
    yield from (("b", "w"), ("h", "w"), ("", "w"), ("", "x"))


def _lse() -> Iterator[Form]:
    for (suffix, prefix), order in product(_sized(), ORDERS):
        for operation in LSE_OPERATIONS:
            yield Form(f"ld{operation}{order}{suffix}", "{s}, {t}, [{n}]", RMW, prefix)
            if "a" not in order:
                yield Form(f"st{operation}{order}{suffix}", "{s}, [{n}]", RMW, prefix)
        yield Form(f"swp{order}{suffix}", "{s}, {t}, [{n}]", RMW, prefix)
        yield Form(f"cas{order}{suffix}", "{s}, {t}, [{n}]", RMW, prefix)
    for order, prefix in product(ORDERS, "wx"):
        yield Form(f"casp{order}", "{s}, {s1}, {t}, {t1}, [{n}]", RMW, prefix, even=True)


def _lse128() -> Iterator[Form]:
    for operation, order in product(("ldclrp", "ldsetp", "swpp"), ORDERS):
        yield Form(f"{operation}{order}", "{s}, {t}, [{n}]", RMW, zero=False)


def _lsui() -> Iterator[Form]:
    for order, prefix in product(ORDERS, "wx"):
        for operation in ("add", "clr", "set"):
            yield Form(f"ldt{operation}{order}", "{s}, {t}, [{n}]", RMW, prefix)
            if "a" not in order:
                yield Form(f"stt{operation}{order}", "{s}, [{n}]", RMW, prefix)
        yield Form(f"swpt{order}", "{s}, {t}, [{n}]", RMW, prefix)
    for order in ORDERS:
        yield Form(f"cas{order}t", "{s}, {t}, [{n}]", RMW)
        yield Form(f"casp{order}t", "{s}, {s1}, {t}, {t1}, [{n}]", RMW, even=True)


def _lsfe() -> Iterator[Form]:
    for operation, order in product(LSFE_OPERATIONS, ORDERS):
        for prefix, kind in (("h", ""), ("s", ""), ("d", ""), ("h", "b")):
            yield Form(f"ld{kind}{operation}{order}", "{s}, {t}, [{n}]", RMW, prefix)
            if "a" not in order:
                yield Form(f"st{kind}{operation}{order}", "{s}, [{n}]", RMW, prefix)


def _the() -> Iterator[Form]:
    for soft, order in product(("", "s"), ORDERS):
        yield Form(f"rcw{soft}cas{order}", "{s}, {t}, [{n}]", RMW)
        yield Form(f"rcw{soft}casp{order}", "{s}, {s1}, {t}, {t1}, [{n}]", RMW, even=True)
        for operation in ("clr", "set", "swp"):
            yield Form(f"rcw{soft}{operation}{order}", "{s}, {t}, [{n}]", RMW)
            yield Form(f"rcw{soft}{operation}p{order}", "{s}, {t}, [{n}]", RMW, zero=False)


def _exclusives() -> Iterator[Form]:
    for name, (suffix, prefix) in product(("ldxr", "ldaxr"), _sized()):
        yield Form(f"{name}{suffix}", "{t}, [{n}]", EXCLUSIVE, prefix)
    for name, prefix in product(("ldxp", "ldaxp"), "wx"):
        yield Form(name, "{s}, {t}, [{n}]", EXCLUSIVE, prefix)
    for name, prefix in product(("ldtxr", "ldatxr"), "wx"):
        yield Form(name, "{t}, [{n}]", EXCLUSIVE, prefix)


def forms() -> list[Form]:
    """Every mnemonic, size, ordering and alias."""
    sources = (_lse, _lse128, _lsui, _lsfe, _the, _exclusives)
    return [form for source in sources for form in source()]


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
