# SPDX-License-Identifier: GPL-2.0
"""The answer on the terminal: 25 lines, the published figures first, and no digit cut."""

from __future__ import annotations

import io
import lzma
import re
from pathlib import Path

import pytest
from rich.console import Console

from docs.evidence.draw.sets import load_sets
from firsttouch.analysis.dataset import Dataset, read_dataset
from firsttouch.lab.results import FILE_NAME
from firsttouch.output import terminal
from firsttouch.output.row_tables import print_dataset
from firsttouch.output.terminal import LINES, first_figure, print_answers
from firsttouch.places import EXPERIMENTS
from tests.support import made_results

_WIDTHS = (100, 80, 60, 40)
# A number as it is printed.
_NUMBER = re.compile(r"(?<![\w.,])-?\d[\d,]*(?:\.\d+)?(?![\w,])")


def _answers(dataset: Dataset, width: int) -> str:
    sink = io.StringIO()
    print_answers(dataset, "out/report.html", Console(file=sink, width=width, highlight=False))
    return sink.getvalue()


def _table(dataset: Dataset, width: int) -> str:
    sink = io.StringIO()
    print_dataset(dataset, Console(file=sink, width=width, highlight=False))
    return sink.getvalue()


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    folder = made_results.experiments(tmp_path_factory.mktemp("catalog"))
    return made_results.dataset(tmp_path_factory.mktemp("out"), made_results.plan(folder), folder)


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """What was measured on all machines: faults, reads, and zero pages in their caches."""
    sets = load_sets()
    folder = tmp_path_factory.mktemp("machines")
    names = "machines", "machines-reads", "colors"
    results = b"".join(lzma.decompress(sets[name].file("6.12").read_bytes()) for name in names)
    (folder / FILE_NAME).write_bytes(results)
    return read_dataset(folder)


@pytest.mark.parametrize("width", [100, 80])
def test_the_answer_to_everything_has_25_lines_at_most(full: Dataset, width: int) -> None:
    lines = _answers(full, width).splitlines()
    assert 10 < len(lines) <= LINES
    assert lines[-1] == "Report: out/report.html"


@pytest.mark.parametrize("width", [100, 80])
def test_so_has_the_answer_of_many_machines(machines: Dataset, width: int) -> None:
    assert len(machines.platforms()) > 10
    lines = _answers(machines, width).splitlines()
    assert len(lines) <= LINES
    said = " ".join(" ".join(lines).split())
    assert "Not reproduced: system time" not in said
    assert len(re.findall("Not reproduced: no noticeable regression of anonymous", said)) == 1
    assert ", the furthest of " in said
    assert re.search(r"page faults halved, .* -50.00 % reproduced 9 x", said)


def test_verdicts_without_room_are_counted(
    machines: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "LINES", 0)
    assert re.search(
        r"^\d\d verdicts on published figures: see the report$", _answers(machines, 100), re.M
    )


def test_a_published_figure_stands_with_both_values_its_change_and_its_verdict(
    full: Dataset,
) -> None:
    text = _answers(full, 100)
    (line,) = (line for line in text.splitlines() if line.startswith("page faults halved  "))
    assert line.split()[3:] == ["131,072", "65,536", "-50.00", "%", "reproduced"]
    # A time is set beside the count and not judged.
    assert "Not reproduced: system time" not in text
    assert "cannot be judged by counts" in text


@pytest.mark.long
@pytest.mark.parametrize("width", _WIDTHS)
def test_no_digit_is_cut_at_any_width(full: Dataset, width: int) -> None:
    for print_ in (_answers, _table):
        text = print_(full, width)
        assert "…" not in text
        wide = print_(full, 1000)
        if print_ is _table:
            assert set(_NUMBER.findall(wide)) <= set(_NUMBER.findall(text))
        else:
            assert "131,072" in text and "65,536" in text and "-50.00 %" in text


@pytest.mark.parametrize("width", [60, 40])
def test_where_a_table_has_no_room_its_rows_are_lines(full: Dataset, width: int) -> None:
    text = _answers(full, width)
    assert "page faults halved\n  stock 131,072  on 65,536" in text
    rows = [line for line in _table(full, width).splitlines() if line.startswith("  stock ")]
    assert rows and max(map(len, rows)) <= width


def test_every_row_has_its_unit_and_nothing_is_said_of_what_did_not_change(full: Dataset) -> None:
    text = _table(full, 200)
    assert "no claim" not in text
    assert not re.search(r"(?<![\d.])0(\.00)? %", text)
    line = next(line for line in text.splitlines() if line.startswith("ldadd 4k  "))
    assert line.split()[:4] == ["ldadd", "4k", "page_faults", "faults"]
    assert "kernel instructions per page" in text
    # Every row, also those of metrics that the report's tables do not show.
    assert "instructions_user" in text
    assert "_ns " not in text


def test_one_arm_has_no_change(tmp_path: Path) -> None:
    results = [
        made for made in made_results.plan(EXPERIMENTS, ["populate"], by="ldadd")
        if made.arm == "on"
    ]  # fmt: skip
    text = _table(made_results.dataset(tmp_path, results), 100)
    assert "change" not in text and "%" not in text


def test_another_pair_is_named_above_its_changes(tmp_path: Path) -> None:
    made = made_results.plan(EXPERIMENTS, ["openjdk-pretouch"], java="21")
    results = [result for result in made if result.arm in ("stock", "inorder")]
    assert "change stock -> inorder" in _table(made_results.dataset(tmp_path, results), 200)


def test_the_first_figure_is_one_that_was_published(full: Dataset) -> None:
    assert first_figure(full) == (
        "populate ldadd 4k 256 MiB on neoverse-n1: page_faults stock 131,072, on 65,536, -50.00 %"
    )
