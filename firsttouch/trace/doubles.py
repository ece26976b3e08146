# SPDX-License-Identifier: GPL-2.0
"""Finds double faults: a read of a missing page, then a write of it by the same process.

A fault has no read or write bit for perf; the instruction at its pc has. Where
that is unknown the order decides: a page that faults a second time while it is
mapped was read first. A fault on a page that is not mapped begins anew: what
was there was given back.
"""

from __future__ import annotations

from firsttouch.trace.allocators import GO, allocator_with
from firsttouch.trace.events import Call, Changed, Fate, Fault, Mapped
from firsttouch.trace.instructions import Code
from firsttouch.trace.kinds import TMPFS, Access, First, Kind, kind_of
from firsttouch.trace.mapped_files import MappedFiles
from firsttouch.trace.process import Process
from firsttouch.trace.records import Recording
from firsttouch.trace.remedies import Replay, new_outcomes
from firsttouch.trace.spaces import ANONYMOUS, ANY, PROT_EXEC, PROT_WRITE, Place, memory_kind
from firsttouch.trace.totals import Giver, Pair, Stack, Totals
from firsttouch.trace.unwinding import Unwinder

# ns in which a fault is near a call that holds mmap_lock.
_NEAR = 100_000
# vm.mmap_min_addr, its usual value.
_LOWEST = 65536


class Finder:
    """Finds what the faults of a recording show."""

    def __init__(self, recording: Recording, mapped_files: MappedFiles) -> None:
        self._recording = recording
        self._mapped_files = mapped_files
        self._code = Code(recording, mapped_files)
        self.unwinder = Unwinder(recording.machine, mapped_files)
        self._totals = Totals(outcomes=new_outcomes())
        self._processes: dict[int, Process] = {}

    def run(self) -> Totals:
        for event in self._recording.events():
            if isinstance(event, Fault):
                self._fault(event)
            elif isinstance(event, Mapped):
                self._map(event)
            elif isinstance(event, Call):
                self._call(event)
            else:
                self._change(event)
        for process in self._processes.values():
            process.close(self._totals)
            if not process.ended:
                self._totals.outlived.append(process.name)
        return self._totals

    def _change(self, event: Changed) -> None:
        if event.what == Fate.FORKED:
            self._fork(event)
        elif event.what == Fate.EXECUTED:
            self._execute(event)
        elif event.what == Fate.ENDED:
            self._end(event)
        elif event.what == Fate.THREADED:
            self._process(event.pid).threaded = True
        elif event.what == Fate.NAMED:
            self._process(event.pid).thread_names[event.other] = event.name
        else:
            self._process(event.pid).replay.forbid_huge()

    def _process(self, pid: int) -> Process:
        process = self._processes.get(pid)
        if process is None:
            replay = Replay(self._totals.outcomes, self._recording.page_size)
            process = self._processes[pid] = Process(pid, f"process {pid}", replay)
        return process

    def _execute(self, event: Changed) -> None:
        replay = self._process(event.pid).replay.execute()
        self._begin(Process(event.pid, event.name, replay, executed=True))

    def _begin(self, process: Process) -> None:
        if old := self._processes.get(process.pid):
            old.close(self._totals)
        self._processes[process.pid] = process

    def _end(self, event: Changed) -> None:
        process = self._processes.get(event.pid)
        if not process:
            return
        # A program that is executed maps its file at once.
        if not process.space and process.executing:
            self._totals.detached.append(process.name)
        # Where others go on after the first thread, and of a process with threads from before.
        if process.threaded or (event.pid == self._recording.pid and self._recording.attached):
            process.replay.close()
            process.ended = True
            return
        process.close(self._totals)
        del self._processes[event.pid]

    def _fork(self, event: Changed) -> None:
        parent = self._process(event.other)
        self._begin(parent.fork(event.pid))
        # A page that was written, in a way that is not known, is copied when it is written again.
        unsure = (Access.EITHER, Access.UNKNOWN)
        for page in [p for p, first in parent.first.items() if first.access in unsure]:
            del parent.first[page]

    def _map(self, event: Mapped) -> None:
        process = self._process(event.pid)
        process.locked = event.time, event.tid
        if event.prot & PROT_EXEC:
            file = self._mapped_files.at(Place(event.path, 0, event.pid, event.identity))
            if file and file.is_go:
                process.allocator = allocator_with(process.allocator, GO.mark)
        process.map(event)

    def _call(self, event: Call) -> None:
        process = self._process(event.pid)
        if event.call != "madvise":
            process.locked = event.time, event.tid
        places = self._stack(process, event).places
        start, end = process.call(event, places)
        if start < end:
            process.give_back(start, end, Giver(event.call, places))

    def _fault(self, fault: Fault) -> None:
        totals, process = self._totals, self._processes.get(fault.pid) or self._process(fault.pid)
        page = fault.address >> process.shift
        process.executing = process.executing and not fault.user
        kind = self._take(process, fault, page)
        locked, locker = process.locked
        totals.contended += fault.time < locked + _NEAR and locker not in (0, fault.tid)
        totals.timeline.add(fault.time - self._recording.time, kind)
        process.threads[fault.tid] += 1
        stack = self._stack(process, fault)
        stack.kinds[kind] += 1
        giver = process.givers.get(page // process.block) if kind == Kind.AGAIN else None
        if giver:
            stack.givers[giver] += 1

    def _denied(self, fault: Fault, mapping: Mapped | None, access: Access) -> bool:
        """Tell whether a fault is a SIGSEGV: no page is there, and its mapping allows none.

        mremap(2) is recorded of programs of 64 bits; what exec maps, after the kernel's faults.
        """
        whole = self._recording.says_calls and fault.bits == 64
        if mapping is None:
            return fault.user and (whole or fault.address < _LOWEST)
        needed = PROT_WRITE if access.may_write and not access.may_read else ANY
        return whole and not (fault.mapped or mapping.prot & needed)

    def _take(self, process: Process, fault: Fault, page: int) -> Kind:
        """Take a fault; return its kind."""
        # Here almost all of the time goes: attributes that are used twice are local.
        mapped, access = fault.mapped, self._code.instruction(process, fault).access
        mapping = process.space.at(fault.address)
        if self._denied(fault, mapping, access):
            return Kind.NO_MEMORY
        memory = memory_kind(mapping)
        anonymous = memory == ANONYMOUS
        if process.new:
            process.begin(fault)
        forked = process.forked and mapped > 0
        before = process.touch(page, forked)
        kind, first = Kind.SECOND, None
        # Of a page that is not mapped no read is known.
        if not mapped:
            process.first.pop(page, None)
        elif access.may_write and process.first:
            first = process.first.pop(page, None)
        if first:
            self._double(process, first, fault, memory)
        else:
            if access.may_read and not mapped:
                process.first[page] = First(fault.pc, access)
            kind = kind_of(
                access, mapped, mapping, memory, user=fault.user, before=before, forked=forked
            )
        if anonymous and (kind == Kind.SECOND or not mapped):
            process.replay.touch(
                page, mapping, write=access.may_write, missing=kind != Kind.SECOND,
                again=before and not mapped,
            )  # fmt: skip
        if kind == Kind.SHARED_MEMORY and mapping and not mapping.path.startswith(TMPFS):
            process.replay.share(fault.address, mapping)
        process.anonymous += anonymous
        process.note(page, kind)
        return kind

    def _double(self, process: Process, first: First, fault: Fault, memory: str) -> None:
        alone = first.access in (Access.ATOMIC, Access.EXCLUSIVE)
        kind = first.access.value if alone else "apart"
        read = process.place(first.pc)
        write = process.place(fault.pc)
        self._totals.pairs[Pair(kind, memory, read, write)] += 1

    def _stack(self, process: Process, event: Fault | Call) -> Stack:
        chain = self.unwinder.chain(process, event)
        stack = process.stacks.get((event.pc, chain))
        if stack is None:
            places = process.place(event.pc), *process.callers(chain)
            stack = self._totals.stacks.setdefault(places, Stack(places))
            process.stacks[event.pc, chain] = stack
        return stack
