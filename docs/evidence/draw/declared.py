# SPDX-License-Identifier: GPL-2.0
"""docs/evidence/tables.toml: what was measured, and which figures of it the documents show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from firsttouch.analysis.dataset import Dataset, read_dataset
from firsttouch.catalog.experiments import Value
from firsttouch.errors import UserError, nearest
from firsttouch.places import REPOSITORY
from firsttouch.tables import Table, read_toml

# In a checkout; an installed package has no documents.
EVIDENCE = REPOSITORY / "docs/evidence"
KINDS = ("rows", "colors", "spread", "knee", "answer", "sources", "cells", "functions",
         "layouts", "whole", "in-guests")  # fmt: skip
SHOWN = ("value", "change", "per page", "over layouts")


@dataclass(frozen=True)
class ResultSet:
    """A request to the laboratory, and the file that has what came of it.

    `profile` asks for counts by function, `layouts` for that many layouts of
    each cell; 0 is as many as the experiment's file says. QEMUs older than
    version `qemu` do not count all that the set is about.
    """

    name: str
    release: str
    machines: tuple[str, ...]
    experiments: tuple[str, ...]
    arms: tuple[str, ...] = ()
    size: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    profile: bool = False
    layouts: int = 0
    qemu: int = 0

    def file(self, folder: Path = EVIDENCE) -> Path:
        """Return the file of the set's raw results."""
        return folder / f"{self.name}.jsonl.xz"

    def arguments(self) -> list[str]:
        """Return the command that measures the set, behind `firsttouch`."""
        words = ["profile" if self.profile else "lab", "--release", self.release]
        for machine in self.machines:
            words += ["--machine", machine]
        for experiment in self.experiments:
            words += ["--experiment", experiment]
        for arm in self.arms:
            words += ["--arm", arm]
        for name, value in self.settings.items():
            words += ["--set", f"{name}={value}"]
        words += ["--size", self.size] if self.size else []
        return [*words, *(["--layouts", str(self.layouts)] if self.layouts else [])]


@dataclass(frozen=True)
class Selection:
    """Rows of a table: the cases of an experiment that have these parameters.

    `metric` is what columns without one show of them; `label` stands before
    the parameters that tell the cases apart.
    """

    experiment: str
    where: Mapping[str, Value]
    metric: str
    label: str


@dataclass(frozen=True)
class Column:
    """A figure of each of `arms`, as `show` says; an empty `metric` is the row's."""

    head: str
    metric: str
    arms: tuple[str, ...]
    show: str


@dataclass(frozen=True)
class Group:
    """Functions of the kernel that do one thing; `what` says which."""

    what: str
    functions: tuple[str, ...]


@dataclass(frozen=True)
class Block:
    """What stands between a pair of markers: a table, the terminal's answer, or a number."""

    name: str
    kind: str
    sets: tuple[str, ...]
    heads: tuple[str, ...]
    rows: tuple[Selection, ...]
    columns: tuple[Column, ...]
    machine: str
    level: str
    groups: tuple[Group, ...] = ()


@dataclass(frozen=True)
class Picture:
    """The figures of an experiment, as a set has it, in `folder` below the checkout."""

    set: str
    experiment: str
    folder: str


@dataclass(frozen=True)
class Evidence:
    """All that tables.toml declares; `folder` has it and the raw results."""

    folder: Path
    documents: tuple[str, ...]
    sets: Mapping[str, ResultSet]
    blocks: Mapping[str, Block]
    pictures: tuple[Picture, ...]

    def dataset(self, name: str) -> Dataset:
        """Return the dataset of a set's raw results; UserError if they cannot be read whole."""
        dataset = read_dataset(self.sets[name].file(self.folder))
        if dataset.notes:
            raise UserError(dataset.notes[0])
        return dataset


def load_evidence(folder: Path = EVIDENCE) -> Evidence:
    """Return what `folder`/tables.toml declares; UserError, which names the key, if it is wrong."""
    file = folder / "tables.toml"
    top = read_toml(file)
    documents = top.strings("documents")
    sets: list[ResultSet] = []
    for table in top.tables("set"):
        sets.append(_read_set(table, {earlier.name: earlier for earlier in sets}))
    names_of_sets = [each.name for each in sets]
    blocks: list[Block] = []
    for table in top.tables("block"):
        blocks.append(
            _read_block(table, names_of_sets, {earlier.name: earlier for earlier in blocks})
        )
    pictures = [_read_picture(table, names_of_sets) for table in top.tables("picture")]
    top.done()
    for names in (names_of_sets, [block.name for block in blocks]):
        if twice := {name for name in names if names.count(name) > 1}:
            raise UserError(f"{file}: {', '.join(sorted(twice))} is declared twice.")
    return Evidence(
        folder,
        documents,
        {each.name: each for each in sets},
        {each.name: each for each in blocks},
        tuple(pictures),
    )


def _read_set(table: Table, before: Mapping[str, ResultSet]) -> ResultSet:
    name, release = table.take("name", str), table.take("release", str)
    if like := table.choice("like", ["", *before], ""):
        layouts = table.take("layouts", int, before[like].layouts)
        table.done()
        return replace(before[like], name=name, release=release, layouts=layouts)
    result_set = ResultSet(
        name,
        release,
        table.strings("machines", ()),
        table.strings("experiments", ()),
        table.strings("arms", ()),
        table.take("size", str, ""),
        {name: str(value) for name, value in table.table("settings").scalars().items()},
        table.take("profile", bool, False),
        table.take("layouts", int, 0),
        table.take("qemu", int, 0),
    )
    table.done()
    return result_set


def _read_picture(table: Table, sets: list[str]) -> Picture:
    picture = Picture(
        table.choice("set", sets), table.take("experiment", str), table.take("folder", str)
    )
    table.done()
    return picture


def _read_block(table: Table, sets: list[str], before: Mapping[str, Block]) -> Block:
    if like := table.choice("like", ["", *before], ""):
        block = replace(before[like], name=table.take("name", str), sets=table.strings("sets"))
    else:
        block = Block(
            table.take("name", str),
            table.choice("kind", KINDS, "rows"),
            table.strings("sets"),
            table.strings("heads", ()),
            tuple(_read_selection(entry) for entry in table.tables("rows")),
            tuple(_read_column(entry) for entry in table.tables("columns")),
            table.take("machine", str, ""),
            table.take("level", str, ""),
            tuple(_read_group(entry) for entry in table.tables("groups")),
        )
    for name in block.sets:
        if name not in sets:
            raise table.error("sets", f"names {name!r}: {nearest(name, sets)}")
    if block.kind in ("rows", "functions", "whole") and not (block.rows and block.columns):
        raise table.error("rows", "and columns are what a table is made of: give both.")
    table.done()
    return block


def _read_group(table: Table) -> Group:
    group = Group(table.take("what", str), table.strings("functions"))
    table.done()
    return group


def _read_selection(table: Table) -> Selection:
    selection = Selection(
        table.take("experiment", str),
        table.table("where").scalars(),
        table.take("metric", str, ""),
        table.take("label", str, ""),
    )
    table.done()
    return selection


def _read_column(table: Table) -> Column:
    column = Column(
        table.take("head", str, ""),
        table.take("metric", str, ""),
        table.strings("arms"),
        table.choice("show", SHOWN, "value"),
    )
    table.done()
    return column
