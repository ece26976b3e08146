# SPDX-License-Identifier: GPL-2.0
"""Counts the usual faults, quickly: those on missing pages of anonymous memory.

`doubles.py` counts any fault, in several times the time, and with the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from firsttouch.trace.blocks import Limits
from firsttouch.trace.events import Change, Event, Fault, Mapped
from firsttouch.trace.kinds import AGAIN, UNKNOWN, Access, First, kind_of
from firsttouch.trace.process import Process
from firsttouch.trace.totals import BLOCK, Totals

# Faults in a list.
_MOST = 1 << 10


def in_runs(events: Iterable[Event]) -> Iterator[Change | list[Fault]]:
    """Yield the same events, faults in lists: those of a process that follow each other."""
    run: list[Fault] = []
    pid = -1
    for event in events:
        if isinstance(event, Fault):
            if event.pid != pid or len(run) == _MOST:
                if run:
                    yield run
                run, pid = [], event.pid
            run.append(event)
        else:
            if run:
                yield run
            run, pid = [], -1
            yield event
    if run:
        yield run


def count_faults(
    faults: list[Fault],
    process: Process,
    totals: Totals,
    start: int,
    shift: int,
    unusual: Callable[[Fault], None],
) -> None:
    """Count faults of a process; `unusual` counts those that need more than is done here.

    `start` is when the recording began, in ns; a page has 1 << `shift` bytes.
    """
    # Attributes are local, for here most of the time goes.
    replay, stacks, decoded, first = process.replay, process.stacks, process.decoded, process.first
    stack_kinds, timeline = totals.stack_kinds, totals.timeline
    parts, part_shift, last_part = timeline.kinds, timeline.shift, timeline.PARTS
    touched, of_kinds = process.touched.pages, process.touched.kinds
    givers, (untouched, untouched_end) = process.givers, process.untouched
    last_of_block = (BLOCK >> shift) - 1
    block_shift = last_of_block.bit_length()
    low = high = fresh = 0
    mapping: Mapped | None = None
    limits = Limits(0, 0)
    thread, of_thread = -1, [0]
    # Writes that the replay has not seen yet: to pages of a block, upwards.
    run_block = run = run_again = 0
    latest = count = 0
    for fault in faults:
        time, _, tid, pc, address, user, chain, mapped, _, _, _, code = fault
        # While exec goes on, nothing is decoded.
        instruction, stack = decoded.get(pc, UNKNOWN), stacks.get((pc, chain), -1)
        access = instruction.access
        usual = mapped == 0 and user and not code and access.clear and stack >= 0
        begins = untouched <= address < untouched_end
        if run and (begins or not (usual and low <= address < high)):
            replay.touch(run_block, run, run_again, limits)
            run = run_again = 0
        if usual and not low <= address < high:
            low, high, mapping, _, usual, limits, fresh, _ = process.areas.at(address)
        if not usual:
            unusual(fault)
            low = high = 0
            untouched, untouched_end = process.untouched
            parts, part_shift = timeline.kinds, timeline.shift
            continue
        if begins:
            process.begin(fault)
            untouched = untouched_end = 0
        if tid != thread:
            thread, of_thread = tid, process.of_thread(tid)
        page = address >> shift
        block = page >> block_shift
        bit = 1 << (page & last_of_block)
        before = touched.get(block, 0)
        again = before & bit
        if again:
            first.pop(page, None)
            kind = AGAIN
            if givers:
                totals.givers[stack, givers.take(block, bit)] += 1
        else:
            touched[block] = before | bit
            kind = fresh if access.may_write and not access.may_read else _kind(access, mapping)
        of_kind = of_kinds[kind]
        of_kind[block] = of_kind.get(block, 0) | bit
        of_thread[kind] += 1
        stack_kinds[stack][kind] += 1
        part = time - start >> part_shift
        if 0 <= part < last_part:
            parts[kind][part] += 1
            if time > latest:
                latest = time
        else:
            timeline.add(time - start, kind)
            parts, part_shift = timeline.kinds, timeline.shift
        if access.may_read:
            first[page] = First(pc, address, instruction, True)
        if access.may_write:
            if block != run_block or bit <= run:
                if run:
                    replay.touch(run_block, run, run_again, limits)
                run_block, run, run_again = block, bit, again
            else:
                run |= bit
                run_again |= again
        else:
            if run:
                replay.touch(run_block, run, run_again, limits)
                run = run_again = 0
            replay.fault(fault, kind, limits, write=False, again=bool(again))
        count += 1
    if run:
        replay.touch(run_block, run, run_again, limits)
    timeline.last = max(timeline.last, latest - start)
    process.touched.faults += count
    totals.anonymous += count


def _kind(access: Access, mapping: Mapped | None) -> int:
    """Return the kind of an access to a page that had no fault before."""
    return kind_of(access, 0, mapping, user=True, anonymous=True, before=False, forked=False)
