# SPDX-License-Identifier: GPL-2.0
"""`make evidence`: all sets measured or nothing written, documents drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from docs.evidence.draw import command
from docs.evidence.draw.declared import Evidence, load_evidence
from firsttouch.errors import UserError
from firsttouch.lab.results import read_results
from firsttouch.places import EXPERIMENTS
from tests.support import made_results

_TABLES = """
documents = ["page.md"]
[[set]]
name = "one"
release = "6.12"
experiments = ["populate"]
qemu = 1
[[set]]
name = "two"
release = "6.12"
experiments = ["boot"]
[[block]]
name = "faults"
sets = ["one"]
rows = [{ experiment = "populate", where = { page = "4k", by = "ldadd" }, label = "ldadd" }]
columns = [
  { head = "faults", metric = "page_faults", arms = ["stock", "on"], show = "per page" },
  { head = "change", metric = "page_faults", arms = ["on"], show = "change" },
]
[[block]]
name = "cells"
kind = "cells"
sets = ["one", "two"]
"""
_PAGE = "Of <!-- evidence: cells -->?<!-- end --> cells:\n<!-- evidence: faults -->\n<!-- end -->\n"


@pytest.fixture
def evidence(tmp_path: Path) -> Evidence:
    (tmp_path / "tables.toml").write_text(_TABLES)
    (tmp_path / "page.md").write_text(_PAGE)
    return load_evidence(tmp_path)


class FakeLab:
    """`firsttouch lab` that writes results which were made; the set named `failing` ends so."""

    def __init__(self, failing: str = "") -> None:
        self.failing = failing
        self.asked: list[list[str]] = []

    def __call__(self, arguments: Sequence[str]) -> int:
        words = list(arguments)
        self.asked.append(words)
        out = Path(words[words.index("--out") + 1])
        made = made_results.plan(EXPERIMENTS, [words[words.index("--experiment") + 1]])
        source = {"kernel source": "5" * 64}
        made_results.write(out, [replace(result, digests=source) for result in made])
        return int(out.name == self.failing)


def test_every_set_is_measured_by_its_command_and_the_documents_are_drawn(
    evidence: Evidence, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = FakeLab()
    monkeypatch.setattr(command, "firsttouch", lab)
    assert command.measure(evidence, command.chosen(evidence, []), tmp_path / "out")
    out = str(tmp_path / "out")
    assert lab.asked == [
        ["lab", "--release", "6.12", "--experiment", "populate", "--out", f"{out}/one"],
        ["lab", "--release", "6.12", "--experiment", "boot", "--out", f"{out}/two"],
    ]
    assert len(read_results(tmp_path / "two.jsonl.xz").results) == 3
    command.draw(evidence, tmp_path)
    assert (tmp_path / "page.md").read_text() == (
        "Of <!-- evidence: cells -->51<!-- end --> cells:\n<!-- evidence: faults -->\n\n"
        "|  | faults, stock | faults, on | change, on |\n| --- | ---: | ---: | ---: |\n"
        "| ldadd | 2 | 1 | -50.00 % |\n\n"
        f"- Linux 6.12.1, source `sha256:{'5' * 64}`: "
        "`firsttouch lab --release 6.12 --experiment populate`, QEMU emulator version 7.2.22\n\n"
        "<!-- end -->\n"
    )


def test_nothing_is_written_unless_all_sets_are_whole(
    evidence: Evidence, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "firsttouch", FakeLab("two"))
    assert not command.measure(evidence, command.chosen(evidence, []), tmp_path / "out")
    assert not list(tmp_path.glob("*.xz"))


def test_one_set_is_measured_alone_and_an_unknown_one_is_said(
    evidence: Evidence, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = FakeLab("one")
    monkeypatch.setattr(command, "firsttouch", lab)
    assert command.measure(evidence, command.chosen(evidence, ["two"]), tmp_path / "out")
    assert [file.name for file in tmp_path.glob("*.xz")] == ["two.jsonl.xz"]
    assert len(lab.asked) == 1
    with pytest.raises(UserError, match="no set tow: did you mean 'two'"):
        command.chosen(evidence, ["tow"])


def test_a_set_without_a_measurement_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["make evidence", "--set", "floor-7.3"])
    with pytest.raises(SystemExit) as ended:
        command.main()
    assert ended.value.code == 2
    assert "give --measure (MEASURE=1), too." in capsys.readouterr().err


def test_a_set_for_a_newer_qemu_stays_as_it_is_and_says_so_if_it_was_asked_for(
    evidence: Evidence, capsys: pytest.CaptureFixture[str]
) -> None:
    older, newer = evidence.sets.values()
    new = replace(newer, qemu=1000)
    assert command.measurable([older, replace(newer, qemu=1)], asked=True) == [
        older,
        replace(newer, qemu=1),
    ]
    assert command.measurable([older, new], asked=False) == [older]
    said = capsys.readouterr().out
    assert said.startswith("make evidence: two needs QEMU 1000 on PATH, and this is QEMU emulator")
    assert said.endswith(": it stays as it is.\n")
    with pytest.raises(UserError, match=r"two needs QEMU 1000 .*: put a newer one first on PATH"):
        command.measurable([older, new], asked=True)


def test_drawing_twice_changes_nothing(
    evidence: Evidence,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(command, "firsttouch", FakeLab())
    command.measure(evidence, command.chosen(evidence, []), tmp_path / "out")
    capsys.readouterr()
    command.draw(evidence, tmp_path)
    command.draw(evidence, tmp_path)
    assert capsys.readouterr().out == "page.md: written\npage.md: unchanged\n"
