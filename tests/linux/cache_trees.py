# SPDX-License-Identifier: GPL-2.0
"""Caches as a device tree describes them, right and wrong, and what the kernel must say of each.

Every case is two CPUs like the Neoverse N1 (L1D 64 KiB, 4-way, 64-byte lines:
4 colours) but for what its name says. `says` is the one line the kernel writes
to its log, after ``zero page: ``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

MAX_U32 = 0xFFFF_FFFF
FOUR_BY_DT = "4 colors, L1D way 16 KiB from DT (cpu0)"

Properties = dict[str, str | None]


def cells(*values: int) -> str:
    """Return the value of a device tree property."""
    return "<" + " ".join(f"{value:#x}" for value in values) + ">"


N1_L1: Properties = {
    "d-cache-size": cells(0x10000),
    "d-cache-sets": cells(256),
    "d-cache-line-size": cells(64),
    "i-cache-size": cells(0x10000),
    "i-cache-sets": cells(256),
    "i-cache-line-size": cells(64),
}
N1_L2: Properties = {
    "compatible": '"cache"',
    "cache-level": cells(2),
    "cache-unified": "",
    "cache-size": cells(0x100000),
    "cache-sets": cells(2048),
    "cache-line-size": cells(64),
}


@dataclass(frozen=True)
class Tree:
    """A device tree: properties of the CPUs, and cache nodes by label."""

    name: str
    says: str
    cpus: tuple[Properties, ...] = (N1_L1, N1_L1)
    nodes: dict[str, Properties] = field(
        default_factory=lambda: {"l2_0": N1_L2, "l2_1": N1_L2},
    )
    below: tuple[str, ...] = ("<&l2_0>", "<&l2_1>")
    boot: tuple[str, ...] = ()

    def source(self) -> str:
        """Return the overlay that makes QEMU's device tree this one."""
        lines = ["/dts-v1/;", "/plugin/;"]
        for number, properties in enumerate(self.cpus):
            below: Properties = {"next-level-cache": self.below[number] or None}
            lines += [
                f'/ {{ fragment@{number} {{ target-path = "/cpus/cpu@{number}"; __overlay__ {{',
                *_rendered({**properties, **below}),
                "}; }; };",
            ]
        lines.append('/ { fragment@99 { target-path = "/cpus"; __overlay__ {')
        for label, properties in self.nodes.items():
            lines += [f"{label}: {label.replace('_', '-')} {{", *_rendered(properties), "};"]
        lines.append("}; }; };")
        return "\n".join(lines) + "\n"


def _rendered(properties: Properties) -> Iterator[str]:
    for name, value in properties.items():
        if value is not None:
            yield f"{name} = {value};" if value else f"{name};"


def _l1(name: str, says: str, **changes: str | None) -> Tree:
    """Both CPUs have an L1D that differs from the N1's in some properties."""
    changed = {f"d-cache-{key.replace('_', '-')}": value for key, value in changes.items()}
    both = {**N1_L1, **changed}
    return Tree(name, says, (both, both))


def _refused(what: str, cpu: int = 0) -> str:
    return f"1 color, {what} in DT (cpu{cpu})"


_MISSING = "0 is missing or zero"
_UNEVEN = "is not sets x ways x line size"
_SMALL: Properties = {**N1_L1, "d-cache-size": cells(0x8000), "d-cache-sets": cells(128)}
_ONE_COLOR: Properties = {**N1_L1, "d-cache-size": cells(0x10000), "d-cache-sets": cells(64)}

GOOD_TREES = (
    Tree("as it is", FOUR_BY_DT),
    Tree("no L2", FOUR_BY_DT, nodes={}, below=("", "")),
    Tree("smaller second CPU", FOUR_BY_DT, (N1_L1, _SMALL)),
    Tree("larger second CPU", "4 colors, L1D way 16 KiB from DT (cpu1)", (_ONE_COLOR, N1_L1)),
    _l1("three ways", FOUR_BY_DT, size=cells(0xC000)),
    _l1("way of a page", "1 color, L1D way 4 KiB from DT (cpu0)", sets=cells(64)),
    _l1("way below a page", "1 color, L1D way 2 KiB from DT (cpu0)", sets=cells(32)),
    _l1("fully associative", "1 color, L1D way 64 bytes from DT (cpu0)", sets=cells(1)),
    _l1(
        "more colours than reserved",
        "16 colors, L1D way 128 KiB from DT (cpu0), as many as the image reserves",
        size=cells(0x80000),
        sets=cells(2048),
    ),
    _l1("line size as block size", FOUR_BY_DT, line_size=None, block_size=cells(64)),
    Tree(
        "L2 asked for",
        "16 colors, L2 way 128 KiB from DT (cpu0), as many as the image reserves",
        boot=("zero_page_colors=l2",),
    ),
    Tree(
        "L2 asked for, 32 KiB way",
        "8 colors, L2 way 32 KiB from DT (cpu0)",
        nodes={
            label: {**N1_L2, "cache-size": cells(0x40000), "cache-sets": cells(512)}
            for label in ("l2_0", "l2_1")
        },
        boot=("zero_page_colors=l2",),
    ),
)

BAD_TREES = (
    Tree("no caches", _refused(f"L1D d-cache-size {_MISSING}"), ({}, {}), {}, ("", "")),
    _l1("size missing", _refused(f"L1D d-cache-size {_MISSING}"), size=None),
    _l1("sets missing", _refused(f"L1D d-cache-sets {_MISSING}"), sets=None),
    _l1("line size missing", _refused(f"L1D d-cache-line-size {_MISSING}"), line_size=None),
    _l1("only size", _refused(f"L1D d-cache-sets {_MISSING}"), sets=None, line_size=None),
    _l1("size zero", _refused(f"L1D d-cache-size {_MISSING}"), size=cells(0)),
    _l1("sets zero", _refused(f"L1D d-cache-sets {_MISSING}"), sets=cells(0)),
    _l1("line size zero", _refused(f"L1D d-cache-line-size {_MISSING}"), line_size=cells(0)),
    _l1("size empty", _refused(f"L1D d-cache-size {_MISSING}"), size=""),
    _l1("size in 64 bits", _refused(f"L1D d-cache-size {_MISSING}"), size=cells(0, 0x10000)),
    _l1("100 sets", _refused("L1D d-cache-sets 100 is not a power of two"), sets=cells(100)),
    _l1("255 sets", _refused("L1D d-cache-sets 255 is not a power of two"), sets=cells(255)),
    _l1("48-byte lines", _refused("L1D d-cache-line-size 48 is no line size"), line_size=cells(48)),
    _l1("1-byte lines", _refused("L1D d-cache-line-size 1 is no line size"), line_size=cells(1)),
    _l1(
        "lines of a page",
        _refused("L1D d-cache-line-size 4096 is no line size"),
        line_size=cells(4096),
    ),
    _l1("a byte too many", _refused(f"L1D d-cache-size 65537 {_UNEVEN}"), size=cells(65537)),
    _l1("a byte too few", _refused(f"L1D d-cache-size 65535 {_UNEVEN}"), size=cells(65535)),
    _l1("size in KiB", _refused(f"L1D d-cache-size 64 {_UNEVEN}"), size=cells(64)),
    _l1("less than a way", _refused(f"L1D d-cache-size 8192 {_UNEVEN}"), size=cells(8192)),
    _l1(
        "size 2^31",
        _refused("L1D d-cache-size 2147483648 is too large for its sets and lines"),
        size=cells(1 << 31),
    ),
    _l1(
        "size 2^32-1",
        _refused("L1D d-cache-size 4294967295 is too large for its sets and lines"),
        size=cells(MAX_U32),
    ),
    _l1("sets 2^31", _refused("L1D d-cache-sets 2147483648 is too large"), sets=cells(1 << 31)),
    _l1(
        "sets 2^32-1",
        _refused("L1D d-cache-sets 4294967295 is not a power of two"),
        sets=cells(MAX_U32),
    ),
    _l1(
        "line size 2^31",
        _refused("L1D d-cache-line-size 2147483648 is no line size"),
        line_size=cells(1 << 31),
    ),
    _l1(
        "line size 2^32-1",
        _refused("L1D d-cache-line-size 4294967295 is no line size"),
        line_size=cells(MAX_U32),
    ),
    _l1(
        "a way of 2 GiB",
        _refused("L1D d-cache-sets 33554432 is too large"),
        size=cells(1 << 31),
        sets=cells(1 << 25),
    ),
    _l1(
        "all 2^32-1",
        _refused("L1D d-cache-sets 4294967295 is not a power of two"),
        size=cells(MAX_U32),
        sets=cells(MAX_U32),
        line_size=cells(MAX_U32),
    ),
    Tree(
        "second CPU's sets missing",
        _refused(f"L1D d-cache-sets {_MISSING}", cpu=1),
        (N1_L1, {**N1_L1, "d-cache-sets": None}),
    ),
    Tree(
        "second CPU without caches",
        _refused(f"L1D d-cache-size {_MISSING}", cpu=1),
        (N1_L1, {}),
        {"l2_0": N1_L2},
        ("<&l2_0>", ""),
    ),
    Tree(
        "L2 its own next level",
        FOUR_BY_DT,
        nodes={f"l2_{n}": {**N1_L2, "next-level-cache": f"<&l2_{n}>"} for n in (0, 1)},
    ),
    Tree(
        "L2 and L3 each other's next level",
        FOUR_BY_DT,
        nodes={
            "l2_0": {**N1_L2, "next-level-cache": "<&l3>"},
            "l2_1": {**N1_L2, "next-level-cache": "<&l3>"},
            "l3": {**N1_L2, "cache-level": cells(3), "next-level-cache": "<&l2_0>"},
        },
    ),
    Tree("next level that does not exist", FOUR_BY_DT, nodes={}, below=("<0xdead>", "<0xdead>")),
    Tree(
        "L2 asked for, sets missing",
        _refused(f"L2 cache-sets {_MISSING}"),
        nodes={label: {**N1_L2, "cache-sets": None} for label in ("l2_0", "l2_1")},
        boot=("zero_page_colors=l2",),
    ),
    Tree(
        "L2 asked for, size 2^32-1",
        _refused("L2 cache-size 4294967295 is too large for its sets and lines"),
        nodes={label: {**N1_L2, "cache-size": cells(MAX_U32)} for label in ("l2_0", "l2_1")},
        boot=("zero_page_colors=l2",),
    ),
    Tree(
        "L2 asked for, none described",
        _refused("L2 is not described"),
        nodes={},
        below=("", ""),
        boot=("zero_page_colors=l2",),
    ),
)
