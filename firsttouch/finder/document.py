# SPDX-License-Identifier: GPL-2.0
"""Writes and reads trace.json. docs/trace.md describes its keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path

from firsttouch.finder.fault_places import (
    FaultPlace,
    GiverPlace,
    ProcessFaults,
    ProgramFaults,
    ThreadFaults,
)
from firsttouch.finder.kinds import NAMES
from firsttouch.finder.locations import Location
from firsttouch.finder.sites import REMEDIES, Cost, Price, Remedy, Site, Trace
from firsttouch.finder.spaces import ANONYMOUS, PRIVATE_FILE, SHARED
from firsttouch.finder.totals import KINDS
from firsttouch.tables import Json, Table, dump_json, read, read_document

SCHEMA = 1
FILE_NAME = "trace.json"
_MEMORY = (ANONYMOUS, PRIVATE_FILE, SHARED)


def trace_document(trace: Trace, sentences: Iterable[str]) -> str:
    """Return the text of trace.json."""
    return dump_json(trace_object(trace, sentences))


def trace_object(trace: Trace, sentences: Iterable[str]) -> Mapping[str, Json]:
    """Return what trace.json has."""
    document: dict[str, Json] = {"schema": SCHEMA, **asdict(trace)}
    document["doubles"] = trace.doubles
    document["kinds"] = {kind: trace.of_kind(kind) for kind in KINDS}
    document["memory"] = {kind: trace.of_memory(kind) for kind in _MEMORY}
    document["removable"] = {remedy: trace.removable(remedy) for remedy in REMEDIES}
    document["lower_bound"] = trace.lower_bound
    document["sentences"] = list(sentences)
    # Last, because there are many.
    for key in ("programs", "threads", "processes", "fault_places", "sites"):
        document[key] = document.pop(key)
    return document


def read_trace(file: Path) -> Trace:
    """Return the trace in a trace.json; UserError if it cannot be read or is none."""
    return parse_trace(read_document(file, "trace", "trace the command again"))


def parse_trace(table: Table) -> Trace:
    """Return the trace in the object of a trace.json; UserError if it is none."""
    schema = table.take("schema", int)
    if schema != SCHEMA:
        raise table.error(
            "schema",
            f"is {schema}, but this firsttouch reads {SCHEMA}: draw it again by `firsttouch "
            "report`.",
        )
    return Trace(
        command=table.strings("command"),
        machine=table.take("machine", str),
        kernel=table.take("kernel", str),
        page_size=table.take("page_size", int),
        complete=table.take("complete", bool),
        status=table.optional("status", int),
        seconds=table.take("seconds", float),
        faults=table.take("faults", int),
        in_kernel=table.take("in_kernel", int),
        anonymous=table.take("anonymous", int),
        lost=table.take("lost", int),
        unseen=table.optional("unseen", int),
        major=table.take("major", int),
        undecoded=table.take("undecoded", int),
        untouched=table.take("untouched", int),
        sites=tuple(map(_read_site, table.tables("sites"))),
        resident=table.take("resident", int, 0),
        prices=tuple(read(entry, Price, strict=False) for entry in table.tables("prices")),
        unnamed=table.strings("unnamed", ()),
        # Older traces do not say it.
        detached=table.strings("detached", ()),
        exact=table.take("exact", bool, False),
        fault_kinds=table.table("fault_kinds").values_of(int),
        remedies=tuple(read(entry, Remedy, strict=False) for entry in table.tables("remedies")),
        costs=tuple(read(entry, Cost) for entry in table.tables("costs")),
        basis=table.take("basis", str, ""),
        unpriced=table.take("unpriced", str, ""),
        system=table.optional("system", float),
        processor=table.take("processor", str, ""),
        allocator=table.take("allocator", str, ""),
        no_huge=table.take("no_huge", int, 0),
        programs=tuple(
            read(entry, ProgramFaults, strict=False) for entry in table.tables("programs")
        ),
        threads=tuple(read(entry, ThreadFaults, strict=False) for entry in table.tables("threads")),
        processes=tuple(
            read(entry, ProcessFaults, strict=False) for entry in table.tables("processes")
        ),
        calls=table.take("calls", bool, False),
        fault_places=tuple(map(_read_place, table.tables("fault_places"))),
    )


def _read_place(table: Table) -> FaultPlace:
    return FaultPlace(
        table.choice("kind", NAMES),
        _read_location(table.table("place")),
        table.take("faults", int),
        table.take("memory", int),
        table.strings("callers"),
        tuple(read(entry, GiverPlace) for entry in table.tables("givers"))
        if table.has("givers")
        else (),
    )


def _read_site(table: Table) -> Site:
    return Site(
        kind=table.choice("kind", KINDS),
        memory=table.choice("memory", _MEMORY),
        read=_read_location(table.table("read")),
        write=_read_location(table.table("write")),
        reading=table.take("reading", str),
        writing=table.take("writing", str),
        doubles=table.take("doubles", int),
        removable=_read_removable(table.table("removable")),
    )


def _read_removable(table: Table) -> Mapping[str, int]:
    """Return the counts by remedy; older traces also have remedies that are gone."""
    return {remedy: table.take(remedy, int, 0) for remedy in REMEDIES}


def _read_location(table: Table) -> Location:
    return Location(
        table.take("object", str),
        table.take("offset", int),
        table.take("function", str),
        table.take("file", str),
        table.take("line", int),
    )
