# SPDX-License-Identifier: GPL-2.0
"""What a recording has: faults, and what changed address spaces; takes samples of both apart.

recorder/format.h says what is in a sample.
"""

from __future__ import annotations

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
    callers' program counters, the nearest first, by frame pointers. `mapped` is the
    size of the page that was at `address` when the fault began, 0 if there was none, None if
    that was not recorded. `source` and `destination` are what a string instruction of x86-64
    would read and write; 0 on arm64. `bits` is 32 for a program of A32 or i386.
    `code` is what was read at the pc, if that was done at this fault.
    """

    time: int
    pid: int
    tid: int
    pc: int
    address: int
    user: bool
    chain: tuple[int, ...]
    mapped: int | None = None
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


class Forked(NamedTuple):
    """A process that gets a copy of its parent's address space."""

    time: int
    pid: int
    parent: int


class Threaded(NamedTuple):
    """A process that gets another thread, which may outlive the first."""

    time: int
    pid: int


class Executed(NamedTuple):
    """A process that executes another program, in a new address space."""

    time: int
    pid: int
    name: str


class Named(NamedTuple):
    """A thread that gets a name."""

    time: int
    pid: int
    tid: int
    name: str


class Ended(NamedTuple):
    """A process that ends, or that the kernel traces no more."""

    time: int
    pid: int


class Forbade(NamedTuple):
    """A process that has forbidden huge pages for itself, by prctl(PR_SET_THP_DISABLE).

    Its children and the programs that it executes have none either.
    """

    time: int
    pid: int


class GaveBack(NamedTuple):
    """A system call that gives memory back: munmap(2), madvise(2) or brk(2), named by `call`.

    `end` is 0 for brk(2), behind whose `start` the heap has nothing. `pc` and `chain` are as
    in `Fault`. The pages are there again as new when they are touched.
    """

    time: int
    pid: int
    pc: int
    chain: tuple[int, ...]
    call: str
    start: int
    end: int
    frame: StackTop | None = None


class Moved(NamedTuple):
    """mremap(2): what was mapped in `size` bytes from `start` on is in `new_size` bytes from `to`.

    A mapping that shrinks gives the rest back; `pc` and `chain` are as in `Fault`.
    """

    time: int
    pid: int
    pc: int
    chain: tuple[int, ...]
    start: int
    size: int
    to: int
    new_size: int
    frame: StackTop | None = None


# System calls that change what is there; a recording may have none.
Call = GaveBack | Moved
# What is no fault.
Change = Mapped | Forked | Threaded | Executed | Named | Ended | Forbade | Call
Event = Fault | Change


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
# Chains that are remembered; most faults have that of another.
_MOST_CHAINS = 1 << 16


@dataclass
class Samples:
    """The form of a recording's samples."""

    machine: str
    call_chains: bool
    says_mapped: bool
    _chains: dict[bytes, tuple[int, ...]] = field(default_factory=dict)
    # By thread, the arguments of an mremap(2) that has not returned.
    _moving: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._registers = struct.Struct(f"<{_REGISTERS[self.machine][self.call_chains]}")

    def fault(self, data: bytes, misc: int) -> Fault:
        """Return the fault of a sample's bytes. Raises struct.error or ValueError if damaged."""
        user = misc & _MODES == _USER
        pc, pid, tid, time, address = _HEAD.unpack_from(data)
        at = _HEAD.size
        chain: tuple[int, ...] = ()
        if self.call_chains:
            chain, at = self._chain(data, at)
        abi, values, frame, at = self._frame(data, at)
        mapped = _COUNT.unpack_from(data, at)[0] if self.says_mapped else None
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
        if not self.call_chains:
            return abi, values, None, at
        (size,) = _COUNT.unpack_from(data, at)
        at += 8
        if not size:
            return abi, values, None, at
        (filled,) = _COUNT.unpack_from(data, at + size)
        stack, at = data[at : at + min(size, filled)], at + size + 8
        if abi in (_NONE, _ABI_32):
            return abi, values, None, at
        fp, back, sp = (values[2], 0, values[3]) if self.machine == "x86_64" else values[:3]
        return abi, values, StackTop(fp, back, sp, stack), at

    def calls(self, data: bytes, call: int) -> Iterator[Call]:
        """Yield what a system call does, if it does anything.

        Raises struct.error or ValueError if the bytes are damaged.
        """
        if call >= len(_VALUES):
            raise ValueError
        _, pc, pid, tid, time = _CALL.unpack_from(data)
        at = _CALL.size
        chain: tuple[int, ...] = ()
        frame = None
        if self.call_chains:
            chain, at = self._chain(data, at)
        (size,) = _SIZE.unpack_from(data, at)
        at += _SIZE.size + size
        # The kernel pads them by four bytes.
        values = struct.unpack_from(f"<{_VALUES[call]}Q", data, at - 4 - 8 * _VALUES[call])
        if self.call_chains:
            _, _, frame, _ = self._frame(data, at)
        if call == _MREMAP:
            self._moving[tid] = values
        elif call == _MREMAPPED:
            start, size, new_size, flags, _ = self._moving.pop(tid, (0,) * 5)
            (to,) = values
            somewhere = max(to + new_size, start + size) < _NOWHERE
            if somewhere and size and not flags & _DONTUNMAP:
                yield Moved(time, pid, pc, chain, start, size, to, new_size, frame)
        elif call == _BRK:
            if 0 < values[0] < _NOWHERE:
                yield GaveBack(time, pid, pc, chain, "brk", values[0], 0, frame)
        elif (end := sum(values[:2])) >= _NOWHERE:
            return
        elif call == _MUNMAP or values[2] in _DONTNEED:
            name = "munmap" if call == _MUNMAP else "madvise"
            yield GaveBack(time, pid, pc, chain, name, values[0], end, frame)

    def _chain(self, data: bytes, at: int) -> tuple[tuple[int, ...], int]:
        """Return the callers in a chain of calls, and what is behind it."""
        (depth,) = _COUNT.unpack_from(data, at)
        end = at + 8 + 8 * depth
        words = data[at + 8 : end]
        chain = self._chains.get(words)
        if chain is None:
            if len(self._chains) == _MOST_CHAINS:
                self._chains.clear()
            callers = struct.unpack(f"<{len(words) // 8}Q", words)
            # The first is the pc itself.
            chain = tuple(caller for caller in callers if caller < _CONTEXTS)[1:]
            self._chains[words] = chain
        return chain, end
