# SPDX-License-Identifier: GPL-2.0
"""`firsttouch lab` from its options to its output, with fake guests."""

import contextlib
import json
from pathlib import Path

import pytest

from firsttouch.cli.main import main
from firsttouch.errors import GuestError
from firsttouch.lab.results import read_results
from firsttouch.tables import Json
from tests.lab.conftest import FakeLab
from tests.support.full_disk import small_disk

pytestmark = pytest.mark.long

_SMALL = ("--experiment", "populate", "--set", "by=ldadd", "--size", "64M")


def _lab(fake_lab: FakeLab, *arguments: str) -> int:
    return main(["lab", "--out", str(fake_lab.out), *arguments])


@pytest.mark.parametrize("columns", ["100", "80", "60", "40"])
def test_columns_count_for_a_pipe(
    fake_lab: FakeLab,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    columns: str,
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert _lab(fake_lab, *_SMALL) == 0
    *lines, report = capsys.readouterr().out.splitlines()
    # A path that is wrapped cannot be pasted.
    assert report == f"Report: {fake_lab.out / 'report.html'}"
    assert max(len(line.rstrip()) for line in lines) <= int(columns)
    assert max(len(line) for line in lines) > int(columns) - 20
    assert len(lines) < 25 or int(columns) < 80
    assert any("2,048" in line for line in lines)


def test_a_size_that_is_set_is_one_however_it_is_written(fake_lab: FakeLab) -> None:
    for size in ("256M", "268435456", "262144K"):
        assert _lab(fake_lab, "--experiment", "read-fault", "--set", f"size={size}") == 0
    assert len(fake_lab.ran) == 4
    assert _lab(fake_lab, "--experiment", "read-fault", "--set", "size=1M") == 2


def test_quick_results_are_named_so_everywhere(
    fake_lab: FakeLab, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--experiment", "populate", "--experiment", "read-fault")
    assert _lab(fake_lab, *options, "--quick") == 0
    quick = len(fake_lab.ran)
    answer = capsys.readouterr().out
    assert "quick: smaller sizes" in answer
    assert json.loads((fake_lab.out / "summary.json").read_text())["quick"] is True
    assert "quick: smaller sizes" in (fake_lab.out / "report.html").read_text()
    # The report and the export say so, too.
    assert main(["report", str(fake_lab.out)]) == 0
    assert capsys.readouterr().out == answer
    assert "quick: smaller sizes" in (fake_lab.out / "report.html").read_text()
    capsys.readouterr()
    assert main(["export", str(fake_lab.out)]) == 0
    assert "quick: smaller sizes" in capsys.readouterr().out
    assert _lab(fake_lab, *options) == 0
    assert len(fake_lab.ran) - quick > 3 * quick
    assert json.loads((fake_lab.out / "summary.json").read_text())["quick"] is False
    assert "quick: smaller sizes" not in (fake_lab.out / "report.html").read_text()


def test_cells_that_fail_alike_are_one_message_in_ftbenchs_words(
    fake_lab: FakeLab, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    why = "command 0 of the guest failed with status 2: ftbench: --size: no room"
    log = [f"[    0.{number}] a line of the kernel's log" for number in range(20)]
    fake_lab.failing = {"--size 67108864": GuestError(why, log)}
    assert _lab(fake_lab, *_SMALL) == 1
    said = capsys.readouterr().err
    assert said.count("ftbench: --size: no room") == 1
    assert "(6 cells failed for this reason)" in said
    assert "a line of the kernel's log" not in said
    (line,) = (line for line in said.splitlines() if "To run it alone: " in line)
    *command, _ = line.partition("To run it alone: firsttouch ")[2].split()
    assert command[0] == "lab"


def test_results_that_cannot_be_shown_are_a_failure(
    fake_lab: FakeLab, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing: Json = {"commands": [{"lines": [], "regions": []}], "not_modelled": []}
    monkeypatch.setattr("firsttouch.lab.outcomes.guest_outcome", lambda *_, **__: nothing)
    monkeypatch.setattr("firsttouch.lab.run.guard", lambda *_: None)
    assert _lab(fake_lab, *_SMALL) == 1
    said = capsys.readouterr().err
    assert said.count("firsttouch: a result: lines is empty: its command printed nothing.") == 1


def test_a_full_output_directory_is_one_sentence_and_loses_nothing(
    fake_lab: FakeLab, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with small_disk(tmp_path / "small", 1 << 20) as disk:
        filler = disk / "filler"
        with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while file.write(bytes(4096)):
                pass
        words = ["lab", *_SMALL, "--out", str(disk)]
        assert main(words) == 2
        (sentence,) = [line for line in capfd.readouterr().err.splitlines() if "No space" in line]
        assert sentence.startswith("firsttouch: ") and "--out" in sentence
        ran = len(fake_lab.ran)
        filler.unlink()
        # Results are in the store, and are written when there is room again.
        assert main(words) == 0
        assert len(read_results(disk)) == ran == len(fake_lab.ran)
