# SPDX-License-Identifier: GPL-2.0
"""What other rules of fault-ahead save: the rules, their file, and the table of them."""

from __future__ import annotations

from pathlib import Path

from docs.evidence.draw.declared import EVIDENCE
from docs.evidence.draw.packed import traces_file
from docs.evidence.draw.streams import (
    RULES,
    STREAMS,
    Simulated,
    draw_simulated,
    keep_simulated,
    read_simulated,
)
from firsttouch.finder.blocks import Limits
from firsttouch.finder.simulation import Simulation
from firsttouch.finder.worlds import Outcome

_BLOCK, _PAGES = 512, 400


def test_each_rule_is_another() -> None:
    outcomes = {name: Outcome() for name in RULES}
    worlds = tuple(rule(outcomes[name], _BLOCK) for name, rule in RULES.items())
    simulation = Simulation(_BLOCK, worlds)
    for page in range(_PAGES):
        # As many writers as a rule may follow.
        for writer in range(1, 9):
            limits = Limits(writer * 8 * _BLOCK, (writer + 1) * 8 * _BLOCK)
            if page < _PAGES // writer:
                simulation.fault(limits.first + page, 1, limits, write=True, missing=True)
    simulation.close()
    saved = [outcome.saved for outcome in outcomes.values()]
    assert len(set(saved)) > len(saved) // 2
    assert outcomes["1 stream"].saved < outcomes["8 streams"].saved
    assert outcomes["1 page for a page in order"].saved < outcomes["2 streams"].saved


def test_programs_are_kept_and_drawn(tmp_path: Path) -> None:
    rules = dict.fromkeys(RULES, 10) | {"1 stream": 4}
    programs = [Simulated("a", 40, rules, rules), Simulated("b", 60, rules, rules)]
    file = traces_file(tmp_path, STREAMS)
    keep_simulated(file, programs)
    assert read_simulated(file) == programs
    drawn = draw_simulated(programs)
    assert "| 1 stream | 8 | 8.0 % | -12 | 8 |" in drawn
    assert "- 2 programs of Debian 13 with 100 faults in all" in drawn


def test_the_evidence_has_all_rules() -> None:
    programs = read_simulated(traces_file(EVIDENCE, STREAMS))
    assert len(programs) == 46
    assert all(list(program.saved) == list(RULES) for program in programs)
