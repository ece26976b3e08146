# SPDX-License-Identifier: GPL-2.0
"""Tells which mappings are the stacks of threads: Linux gives them no large folios (6.7 on)."""

from __future__ import annotations

from collections.abc import Sequence

from firsttouch.finder.events import Mapped
from firsttouch.finder.spaces import is_anonymous

# At most, in bytes: what pthread_create(3) leaves below a stack, a page or 64 KiB (arm64).
_GUARD = 64 << 10


class ThreadStacks:
    """Those of a process. `says_stacks`: the recording has each mmap(2) with MAP_STACK.

    Otherwise a stack is recognized by how pthread_create(3) maps it: it reserves memory, then
    makes all but a guard accessible.
    """

    def __init__(self, *, says_stacks: bool) -> None:
        self.says_stacks = says_stacks
        # By thread, the bytes of a stack that is not mapped yet.
        self._asked: dict[int, int] = {}
        # What was mapped last that nothing may access yet.
        self._reserved = 0, 0

    def ask(self, tid: int, size: int) -> None:
        """Take an mmap(2) with MAP_STACK of whole pages."""
        self._asked[tid] = size

    def parts(self, event: Mapped, fresh: Sequence[tuple[int, int]]) -> Sequence[tuple[int, int]]:
        """Return from and to which addresses a mapping is a stack; `fresh` was not there before."""
        if self.says_stacks:
            size = sum(end - start for start, end in fresh)
            tid = next((tid for tid, asked in self._asked.items() if asked == size), None)
            if tid is None:
                return ()
            del self._asked[tid]
            return fresh
        start, end = self._reserved
        self._reserved = fresh[-1] if fresh and not event.prot else (0, 0)
        if event.end == end and start < event.start <= start + _GUARD and is_anonymous(event):
            return ((event.start, event.end),)
        return ()
