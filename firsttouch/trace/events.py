# SPDX-License-Identifier: GPL-2.0
"""What a recording has: faults, and what changed address spaces; takes samples of both apart.

recorder/format.h says what is in a sample.
"""

from __future__ import annotations

import enum
import functools
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

# The pc of a thread that the kernel made for a process, such as a worker of io_uring.
WORKER_PC = 2**64 - 1


class StackTop(NamedTuple):
    """The registers from which frames are followed, and the stack from `sp` on.

    `back` is where the function returns to, as far as arm64's LR tells; 0 on x86-64.
    """

    fp: int
    back: int
    sp: int
    stack: bytes


class Fault(NamedTuple):
    """A page fault; `time` in ns. `pc` is that of the program, also for a fault in the kernel.

    `pc` is 0 if it is unknown, WORKER_PC in a thread of the kernel's own. `chain` has the
    callers' program counters, the nearest first, by frame pointers. `mapped` is the size of the
    page that was at `address` when the fault began, 0 if there was none. `source` and
    `destination` are what a string instruction of x86-64 would read and write; 0 on arm64. `bits`
    is 32 for a program of A32 or i386. `code` is what was read at the pc, if that was done.
    """

    time: int
    pid: int
    tid: int
    pc: int
    address: int
    user: bool
    chain: tuple[int, ...]
    mapped: int = 0
    source: int = 0
    destination: int = 0
    bits: int = 64
    code: bytes = b""
    frame: StackTop | None = None


# The first word of the identity of a file that has no build ID.
INODE = "inode"


class Mapped(NamedTuple):
    """A range of addresses that is mapped, or whose protection changes, from `time` on.

    `path` is a file, or a name of the kernel such as ``[heap]`` and ``//anon``.
    `prot` and `flags` are those of mmap(2). `identity` tells a file from others of its
    path: the build ID of an ELF file in hexadecimal, or ``inode N``; "" for what is no file.
    `tid` is 0 for what was mapped before.
    """

    time: int
    pid: int
    start: int
    end: int
    offset: int
    prot: int
    flags: int
    path: str
    identity: str = ""
    tid: int = 0


class Fate(enum.Enum):
    """What becomes of a process."""

    # Of process `other`, it has a copy of the address space.
    FORKED = enum.auto()
    # It has another thread, which may outlive the first.
    THREADED = enum.auto()
    # It has another program, in a new address space.
    EXECUTED = enum.auto()
    # Its thread `other` has a name.
    NAMED = enum.auto()
    # Also of the kernel's tracing.
    ENDED = enum.auto()
    # By prctl(PR_SET_THP_DISABLE): also for its children and the programs that it executes.
    FORBADE_HUGE_PAGES = enum.auto()


class Changed(NamedTuple):
    """A change of a process; `name` is that of a program or a thread."""

    time: int
    pid: int
    what: Fate
    other: int = 0
    name: str = ""


class Call(NamedTuple):
    """munmap(2), madvise(2) or brk(2), which give memory back, or mremap(2), named by `call`.

    `end` is 0 for brk(2), behind whose `start` the heap has nothing. mremap(2) moves what was
    mapped to `to`, up to `new_end`; a mapping that shrinks gives the rest back. `pc`, `chain` and
    `frame` are as in `Fault`.
    """

    time: int
    pid: int
    tid: int
    pc: int
    chain: tuple[int, ...]
    frame: StackTop | None
    call: str
    start: int
    end: int
    to: int = 0
    new_end: int = 0


Event = Fault | Mapped | Changed | Call


_MODES, _USER = 7, 2
# In a chain of calls, where the kernel's part ends and the user's begins.
_CONTEXTS = 2**64 - 4096
_HEAD = struct.Struct("<QIIQQ")
_COUNT = struct.Struct("<Q")
# Of the program, behind their ABI: RSI, RDI and the pc on x86-64, the pc on arm64; with a stack
# also RBP and RSP, or FP, LR and SP.
_REGISTERS = {"x86_64": ("3Q", "5Q"), "aarch64": ("Q", "4Q")}
_NONE, _ABI_32 = 0, 1
# Of a system call: the event, the pc, the process, the thread and the time.
_CALL = struct.Struct("<QQIIQ")
_SIZE = struct.Struct("<I")
# enum ft_call, and how many values each has.
_MUNMAP, _BRK, _MADVISE, _MREMAP, _MREMAPPED = range(5)
_VALUES = 2, 1, 3, 5, 1
# MADV_DONTNEED and MADV_DONTNEED_LOCKED. Pages of MADV_FREE may stay.
_DONTNEED = 4, 24
_DONTUNMAP = 4
# Behind the end of user space, or the number of an error.
_NOWHERE = 1 << 63


@dataclass
class Samples:
    machine: str
    call_chains: bool
    # By thread, the arguments of an mremap(2) that has not returned.
    _moving: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._registers = struct.Struct(f"<{_REGISTERS[self.machine][self.call_chains]}")

    def fault(self, data: bytes, misc: int) -> Fault:
        """Return the fault of a sample's bytes. Raises struct.error or ValueError if damaged."""
        user = misc & _MODES == _USER
        pc, pid, tid, time, address = _HEAD.unpack_from(data)
        chain, at = self._chain(data, _HEAD.size)
        abi, values, frame, at = self._frame(data, at)
        (mapped,) = _COUNT.unpack_from(data, at)
        if abi == _NONE:
            # Only such a thread has no registers of a user's.
            pc = pc if user else WORKER_PC
            return Fault(time, pid, tid, pc, address, user, chain, mapped)
        bits = 32 if abi == _ABI_32 else 64
        source, destination = values[:2] if self.machine == "x86_64" else (0, 0)
        return Fault(
            time, pid, tid, values[-1], address, user, chain, mapped, source, destination, bits,
            b"", frame,
        )  # fmt: skip

    def _frame(self, data: bytes, at: int) -> tuple[int, tuple[int, ...], StackTop | None, int]:
        """Return the ABI, the registers and the frame that are at a place, and what is behind."""
        (abi,) = _COUNT.unpack_from(data, at)
        at += 8
        values: tuple[int, ...] = ()
        if abi != _NONE:
            values = self._registers.unpack_from(data, at)
            at += self._registers.size
        frame = None
        if self.call_chains:
            (size,) = _COUNT.unpack_from(data, at)
            at += 8
            if size:
                (filled,) = _COUNT.unpack_from(data, at + size)
                stack, at = data[at : at + min(size, filled)], at + size + 8
                if abi not in (_NONE, _ABI_32):
                    x86 = self.machine == "x86_64"
                    fp, back, sp = (values[2], 0, values[3]) if x86 else values[:3]
                    frame = StackTop(fp, back, sp, stack)
        return abi, values, frame, at

    def calls(self, data: bytes, call: int) -> Iterator[Call]:
        """Yield what a system call does, if it does anything.

        Raises struct.error or ValueError if the bytes are damaged.
        """
        if call >= len(_VALUES):
            raise ValueError
        _, pc, pid, tid, time = _CALL.unpack_from(data)
        chain, at = self._chain(data, _CALL.size)
        (size,) = _SIZE.unpack_from(data, at)
        at += _SIZE.size + size
        # The kernel pads them by four bytes.
        values = struct.unpack_from(f"<{_VALUES[call]}Q", data, at - 4 - 8 * _VALUES[call])
        frame = self._frame(data, at)[2] if self.call_chains else None
        made = functools.partial(Call, time, pid, tid, pc, chain, frame)
        if call == _MREMAP:
            self._moving[tid] = values
        elif call == _MREMAPPED:
            start, size, new_size, flags, _ = self._moving.pop(tid, (0,) * 5)
            (to,) = values
            somewhere = max(to + new_size, start + size) < _NOWHERE
            if somewhere and size and not flags & _DONTUNMAP:
                yield made("mremap", start, start + size, to, to + new_size)
        elif call == _BRK:
            if 0 < values[0] < _NOWHERE:
                yield made("brk", values[0], 0)
        elif (end := sum(values[:2])) >= _NOWHERE:
            return
        elif call == _MUNMAP or values[2] in _DONTNEED:
            yield made("munmap" if call == _MUNMAP else "madvise", values[0], end)

    def _chain(self, data: bytes, at: int) -> tuple[tuple[int, ...], int]:
        """Return the callers in a chain of calls, if there is one, and what is behind it."""
        if not self.call_chains:
            return (), at
        (depth,) = _COUNT.unpack_from(data, at)
        end = at + 8 + 8 * depth
        return _callers(data[at + 8 : end]), end


@functools.lru_cache(1 << 16)
def _callers(words: bytes) -> tuple[int, ...]:
    callers = struct.unpack(f"<{len(words) // 8}Q", words)
    # The first is the pc itself.
    return tuple(caller for caller in callers if caller < _CONTEXTS)[1:]
