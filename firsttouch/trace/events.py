# SPDX-License-Identifier: GPL-2.0
"""What a recording has, in the order of time: faults, and what changed address spaces."""

from __future__ import annotations

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
