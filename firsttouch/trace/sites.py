# SPDX-License-Identifier: GPL-2.0
"""What a trace is: faults by place, double faults by site, remedies and what they cost."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path, PurePath

from firsttouch.errors import UserError
from firsttouch.tables import Fields, Json, dump_json, read, read_json

# The object of code that is in no file.
JIT = "[JIT]"
# What a C++ compiler calls a namespace that has no name.
_NAMELESS = "(anonymous namespace)::"
# The innermost arguments of a template or a generic; those inside of them are NUL by then.
_ARGUMENTS = re.compile(r"(?<!\boperator)(?<=\w)<[^<>]*>")


@dataclass(frozen=True)
class Location:
    """A place in the words of the program; "" and 0 for what is not known.

    `object` is the path of the file, or `JIT`.
    """

    object: str
    offset: int
    function: str = ""
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        if self.object == JIT and not self.function:
            return "JIT-compiled code"
        name = shortened(self.function) or f"{PurePath(self.object).name}+{self.offset:#x}"
        # A C library's functions in assembly have a line for each of their loops.
        line = self.line and not self.file.endswith(".S")
        return f"{name} ({PurePath(self.file).name}:{self.line})" if line else name


def shortened(function: str) -> str:
    """Return the name of a function without the arguments of its templates, as ``f<>``."""
    name, found = function.replace(_NAMELESS, "").replace("->", "\1"), 1
    while found:
        name, found = _ARGUMENTS.subn("\0", name)
    return name.replace("\1", "->").replace("\0", "<>")


@dataclass(frozen=True)
class FaultPlace:
    """The faults of one kind at one place; `callers` are those of its most frequent chain.

    What a library of the runtime does is at the program's function that called it; `leaf` is
    the function that faulted there. `given_back` has the system call before most faults of kind
    `again`, where calls are recorded, then the function that makes it, and callers of that.
    """

    kind: str
    place: Location
    faults: int
    callers: tuple[str, ...]
    given_back: tuple[str, ...] = ()
    leaf: str = ""

    @property
    def where(self) -> str:
        if not self.leaf:
            return str(self.place)
        return f"{replace(self.place, line=0)} ({self.leaf})"


@dataclass(frozen=True)
class Members:
    """The faults of a program, a thread's name or a process, and how many have that name."""

    name: str
    faults: int
    members: int = 1
    pid: int = 0


SCHEMA = 1
FILE_NAME = "trace.json"


@dataclass(frozen=True)
class Site:
    kind: str
    memory: str
    read: Location
    write: Location
    doubles: int


@dataclass(frozen=True)
class Remedy:
    """What a remedy would do by simulation: `saved` faults for `memory` in bytes at the peak.

    `ns` is the processor time that it saves; None if a survey has no basis for it. Where an
    address decides by chance, up to `most` faults are saved.
    """

    name: str
    saved: int
    memory: int
    ns: float | None = None
    most: int = 0

    @property
    def likely(self) -> int:
        """The middle of the faults that it saves."""
        return (self.saved + max(self.saved, self.most)) // 2


@dataclass(frozen=True)
class Trace:
    """What a trace found, without its faults.

    `status` is that of waitpid(2), None if the program goes on or the recorder was killed (then
    `complete` is false). `seconds` is the time from start to end, `system` the system time of the
    command, None if that is not known. `lost` faults were counted and not recorded. `unseen` were
    taken in the kernel and may not be recorded without privileges; None if that is not known.
    `resident` is the most memory in bytes that a process of the command had; 0 if that is not
    known. `detached` names programs that were not traced, with their children, since they have
    other rights than the tracer, `outlived` those that went on when the command ended.
    `fault_kinds` counts all `faults`; `fault_places`, `programs`, `threads` and `processes` say
    whose they are. `allocator` is that of the processes with most first touches of anonymous
    memory. `priced` faults took `ns` by the survey in the file `basis`. `nameless` faults are in
    code that a JIT compiler gave no names. `contended` faults came within 0.1 ms of a call of
    another thread that holds mmap_lock for writing.
    """

    command: tuple[str, ...]
    machine: str
    kernel: str
    page_size: int
    complete: bool
    status: int | None
    seconds: float
    faults: int
    anonymous: int
    lost: int
    unseen: int | None
    sites: tuple[Site, ...]
    resident: int = 0
    detached: tuple[str, ...] = ()
    outlived: tuple[str, ...] = ()
    fault_kinds: Mapping[str, int] = field(default_factory=dict)
    programs: tuple[Members, ...] = ()
    threads: tuple[Members, ...] = ()
    processes: tuple[Members, ...] = ()
    fault_places: tuple[FaultPlace, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    allocator: str = ""
    priced: int = 0
    ns: float = 0.0
    basis: str = ""
    system: float | None = None
    nameless: int = 0
    contended: int = 0

    @property
    def doubles(self) -> int:
        return self.doubles_of()

    @property
    def lower_bound(self) -> bool:
        """Whether so much was not recorded, such as 0.1 % of the faults, that more are double."""
        lost = self.lost > (self.faults + self.lost) / 1000
        return lost or not self.complete or bool(self.detached)

    def doubles_of(self, *, kind: str = "", memory: str = "") -> int:
        """Return the doubles of a kind and a memory, or of any."""
        return sum(
            site.doubles
            for site in self.sites
            if kind in ("", site.kind) and memory in ("", site.memory)
        )


def trace_document(trace: Trace, sentences: Iterable[str]) -> str:
    document: dict[str, Json] = {"schema": SCHEMA, **asdict(trace)}
    return dump_json(document | {"doubles": trace.doubles, "sentences": list(sentences)})


def read_trace(file: Path) -> Trace:
    """Return the trace in a trace.json; UserError if it cannot be read or is none."""
    return parse_trace(read_json(file))


def read_trace_of(command: Sequence[str], directory: Path) -> Trace:
    """Return the trace of a command in a directory; UserError if there is none."""
    file = directory / FILE_NAME
    trace = read_trace(file) if file.is_file() else None
    if trace is None or trace.command != tuple(command):
        raise UserError(
            f"{directory} has no trace of this command: run it without --try, which numbers the "
            "remedies that it prints."
        )
    return trace


def parse_trace(table: Fields) -> Trace:
    """Return the trace in the object of a trace.json; UserError if it is none."""
    schema = table.take("schema", int)
    if schema != SCHEMA:
        raise table.error(
            "schema",
            f"is {schema}, but this firsttouch reads {SCHEMA}: draw it again by `firsttouch "
            "report`.",
        )
    return read(table, Trace, strict=False)
