# SPDX-License-Identifier: GPL-2.0
"""Caches as a device tree describes them, right and wrong, and how many colours there must be.

Every case is two CPUs like the Neoverse N1 (L1D 64 KiB, 4-way, 64-byte lines:
4 colours) but for what its name says. `colors` is how many zero pages there
must be, and `cpu` the one whose L1D decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

MAX_U32 = 0xFFFF_FFFF

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
    colors: int = 4
    cpus: tuple[Properties, ...] = (N1_L1, N1_L1)
    nodes: dict[str, Properties] = field(
        default_factory=lambda: {"l2_0": N1_L2, "l2_1": N1_L2},
    )
    below: tuple[str, ...] = ("<&l2_0>", "<&l2_1>")
    cpu: int = 0

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


def _l1(name: str, colors: int = 4, **changes: str | None) -> Tree:
    """Both CPUs have an L1D that differs from the N1's in some properties."""
    changed = {f"d-cache-{key.replace('_', '-')}": value for key, value in changes.items()}
    both = {**N1_L1, **changed}
    return Tree(name, colors, (both, both))


_SMALL: Properties = {**N1_L1, "d-cache-size": cells(0x8000), "d-cache-sets": cells(128)}
_ONE_COLOR: Properties = {**N1_L1, "d-cache-size": cells(0x10000), "d-cache-sets": cells(64)}

GOOD_TREES = (
    Tree("as it is", 4),
    Tree("no L2", 4, nodes={}, below=("", "")),
    Tree("smaller second CPU", 4, (N1_L1, _SMALL)),
    Tree("larger second CPU", 4, (_ONE_COLOR, N1_L1), cpu=1),
    _l1("three ways", 4, size=cells(0xC000)),
    _l1("way of a page", 1, sets=cells(64)),
    _l1("way below a page", 1, sets=cells(32)),
    _l1("fully associative", 1, sets=cells(1)),
    _l1(
        "more colours than reserved",
        16,
        size=cells(0x80000),
        sets=cells(2048),
    ),
    _l1("line size as block size", 4, line_size=None, block_size=cells(64)),
)

BAD_TREES = (
    Tree("no caches", 1, ({}, {}), {}, ("", "")),
    _l1("size missing", 1, size=None),
    _l1("sets missing", 1, sets=None),
    _l1("line size missing", 1, line_size=None),
    _l1("only size", 1, sets=None, line_size=None),
    _l1("size zero", 1, size=cells(0)),
    _l1("sets zero", 1, sets=cells(0)),
    _l1("line size zero", 1, line_size=cells(0)),
    _l1("size empty", 1, size=""),
    _l1("size in 64 bits", 1, size=cells(0, 0x10000)),
    _l1("100 sets", 1, sets=cells(100)),
    _l1("255 sets", 1, sets=cells(255)),
    _l1("48-byte lines", 1, line_size=cells(48)),
    _l1("1-byte lines", 1, line_size=cells(1)),
    _l1(
        "lines of a page",
        1,
        line_size=cells(4096),
    ),
    _l1("a byte too many", 1, size=cells(65537)),
    _l1("a byte too few", 1, size=cells(65535)),
    _l1("size in KiB", 1, size=cells(64)),
    _l1("less than a way", 1, size=cells(8192)),
    _l1(
        "size 2^31",
        4,
        size=cells(1 << 31),
    ),
    _l1(
        "size 2^32-1",
        1,
        size=cells(MAX_U32),
    ),
    _l1("sets 2^31", 1, sets=cells(1 << 31)),
    _l1(
        "sets 2^32-1",
        1,
        sets=cells(MAX_U32),
    ),
    _l1(
        "line size 2^31",
        1,
        line_size=cells(1 << 31),
    ),
    _l1(
        "line size 2^32-1",
        1,
        line_size=cells(MAX_U32),
    ),
    _l1(
        "a way of 2 GiB",
        16,
        size=cells(1 << 31),
        sets=cells(1 << 25),
    ),
    _l1(
        "all 2^32-1",
        1,
        size=cells(MAX_U32),
        sets=cells(MAX_U32),
        line_size=cells(MAX_U32),
    ),
    Tree(
        "second CPU's sets missing",
        1,
        (N1_L1, {**N1_L1, "d-cache-sets": None}),
        cpu=1,
    ),
    Tree(
        "second CPU without caches",
        1,
        (N1_L1, {}),
        {"l2_0": N1_L2},
        ("<&l2_0>", ""),
        cpu=1,
    ),
    Tree(
        "L2 its own next level",
        4,
        nodes={f"l2_{n}": {**N1_L2, "next-level-cache": f"<&l2_{n}>"} for n in (0, 1)},
    ),
    Tree(
        "L2 and L3 each other's next level",
        4,
        nodes={
            "l2_0": {**N1_L2, "next-level-cache": "<&l3>"},
            "l2_1": {**N1_L2, "next-level-cache": "<&l3>"},
            "l3": {**N1_L2, "cache-level": cells(3), "next-level-cache": "<&l2_0>"},
        },
    ),
    Tree("next level that does not exist", 4, nodes={}, below=("<0xdead>", "<0xdead>")),
)
