# SPDX-License-Identifier: GPL-2.0
"""`make evidence`: a set is measured on all releases or not written, and its page."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from docs.evidence.draw import command
from docs.evidence.draw.sets import ResultSet, load_sets
from docs.evidence.draw.tables import page
from firsttouch.files import EXPERIMENTS
from firsttouch.lab.results import read_results
from tests.support import made_results

_SETS = """
[[set]]
name = "one"
releases = ["6.12", "7.3"]
commit = "abc"
measure = "lab --experiment populate"
metrics.populate = "page_faults, instructions_kernel"
options."6.12" = "--layouts 1"
options."7.3" = "--layouts 1"
[[set]]
name = "two"
releases = ["6.12"]
commit = "abc"
measure = "lab --experiment boot"
metrics.boot = "boot_us"
changes = true
"""


@pytest.fixture
def sets(tmp_path: Path) -> dict[str, ResultSet]:
    (tmp_path / "sets.toml").write_text(_SETS)
    return load_sets(tmp_path)


class FakeLab:
    """`firsttouch lab` that writes results which were made; the set named `failing` ends so."""

    def __init__(self, failing: str = "") -> None:
        self.failing = failing
        self.asked: list[str] = []

    def __call__(self, arguments: Sequence[str]) -> int:
        words = list(arguments)
        self.asked.append(" ".join(words))
        out = Path(words[words.index("--out") + 1])
        made = made_results.plan(EXPERIMENTS, [words[words.index("--experiment") + 1]])
        made_results.write(out, made)
        return int(out.name == self.failing)


def test_sets_are_measured_by_their_commands_and_drawn(
    sets: dict[str, ResultSet], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = FakeLab()
    monkeypatch.setattr(command, "firsttouch", lab)
    assert all(command.measure(each, tmp_path / "out", tmp_path) for each in sets.values())
    out = tmp_path / "out"
    assert lab.asked == [
        f"lab --release 6.12 --experiment populate --layouts 1 --out {out}/one-6.12",
        f"lab --release 7.3 --experiment populate --layouts 1 --out {out}/one-7.3",
        f"lab --release 6.12 --experiment boot --out {out}/two-6.12",
    ]
    assert len(read_results(tmp_path / "two-6.12.jsonl.xz")) == 3
    text = page(sets["one"], tmp_path)
    assert "Measured at commit abc by:" in text
    assert "`firsttouch lab --release 7.3 --experiment populate --layouts 1`" in text
    assert "| cell | 6.12, page_faults, stock | 6.12, page_faults, on | 6.12, instr" in text
    assert text.count("\n## ") == 1
    assert "(-50.00 %)" in text
    assert "\n| all 1 | " in page(sets["two"], tmp_path)


def test_nothing_is_written_unless_all_releases_succeed(
    sets: dict[str, ResultSet], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "firsttouch", FakeLab("one-7.3"))
    assert not command.measure(sets["one"], tmp_path / "out", tmp_path)
    assert not list(tmp_path.glob("*.xz"))
