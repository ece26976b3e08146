# SPDX-License-Identifier: GPL-2.0
"""What removes doubles, from findings made by hand."""

from collections import Counter
from pathlib import Path

import pytest

from firsttouch.trace.records import Recording
from firsttouch.trace.spaces import ANONYMOUS, PRIVATE_FILE, SHARED, Place
from firsttouch.trace.summary import summarize
from firsttouch.trace.symbols import Symbols
from firsttouch.trace.totals import ATOMIC, EXCLUSIVE, LOAD_STORE, Pair, Totals

RECORDING = Recording(
    Path("trace.data"), "aarch64", 4096, pid=1, time=0, ring=0, call_chains=False, attached=False
)


@pytest.mark.parametrize("memory", [ANONYMOUS, PRIVATE_FILE, SHARED])
def test_a_kernel_upgrades_reads_of_anonymous_memory_alone(memory: str) -> None:
    counts = {ATOMIC: 5, EXCLUSIVE: 7, LOAD_STORE: 11}
    place = Place("", 0x1000, 1)
    totals = Totals(
        pairs=[Pair(kind, memory, place, place, "read", "write") for kind in counts],
        counts=Counter(dict(enumerate(counts.values()))),
    )
    trace = summarize(RECORDING, totals, Symbols())
    assert trace.doubles == 23
    assert trace.upgradable == (5 if memory == ANONYMOUS else 0)
