# SPDX-License-Identifier: GPL-2.0
"""`firsttouch try` from its options to its answer: a fake tree is built, and guests are fake.

What a guest counts follows from the bytes of its image, to which the fake tree
adds its mm/memory.c.
"""

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from firsttouch.analysis.dataset import read_dataset
from firsttouch.cli.main import main
from firsttouch.lab.results import read_results
from firsttouch.vm.guest import Guest
from tests.conftest import TRIED
from tests.lab.conftest import GUARDED_FAULTS

pytestmark = pytest.mark.long

_PATCH = TRIED / "0001-mm-synchronize-each-first-touch.patch"
_MOVING = TRIED / "0001-mm-move-the-code.patch"
_FAULTS = GUARDED_FAULTS
_CELL = ("--experiment", "populate", "--set", "by=store", "--set", "page=4k", "--size", "8M")


@pytest.fixture
def tried(
    ran: list[Guest], fake_linux: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """Return a function that tries something with the fake tree, and returns what it prints."""

    def run(*arguments: str | Path, status: int = 0) -> str:
        capsys.readouterr()
        words = ["try", *arguments, "--source", fake_linux, *_CELL, "--out", tmp_path / "out"]
        assert main(list(map(str, words))) == status
        printed = capsys.readouterr()
        return printed.err if status else printed.out

    return run


def _line(printed: str, start: str) -> list[str]:
    (line,) = (line for line in printed.splitlines() if line.startswith(start))
    return line.split()


def test_a_patch_is_answered_per_fault_with_the_function(
    tried: Callable[..., str], ran: list[Guest], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = tried(_PATCH)
    assert printed.startswith(f"tried against stock, 6.12 on neoverse-n1: {_PATCH.name}\n")
    heads = ["stock", "tried", "change", "relative", "ISB"]
    assert _line(printed, "costs more, per fault")[-5:] == heads
    assert _line(printed, "populate store")[-6:] == [
        "2,500.00", "2,510.00", "+10.00", "+0.40", "%", "+10.00"
    ]  # fmt: skip
    assert _line(printed, "do_page_fault")[:4] == ["do_page_fault", "500.00", "510.00", "+10.00"]
    assert "vectors" not in printed
    # Stock, its control and the arm, all of them again with functions.
    assert len(ran) == 6
    assert "do_page_fault" in (tmp_path / "out/report.html").read_text()
    assert main(["report", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out == printed
    assert "do_page_fault" in (tmp_path / "out/report.html").read_text()
    # The functions of another patch are not those of this one.
    (file := tmp_path / "out/results.jsonl").write_text(file.read_text().replace("0001", "0002"))
    assert main(["report", str(tmp_path / "out")]) == 0
    assert "do_page_fault" not in capsys.readouterr().out
    # All of it is in the store.
    assert tried(_PATCH, "--fail-if", "instructions_kernel>0.5%") == printed
    said = tried(_PATCH, "--fail-if", "instructions_kernel>0.3%", status=1)
    assert "instructions_kernel +0.40 %, more than +0.3 % (populate store 4k 8 MiB)." in said
    assert len(ran) == 6


def test_a_result_says_what_was_tried_and_its_command_repeats_it(
    tried: Callable[..., str], ran: list[Guest], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tried("--arm", "mine", _PATCH, "--boot", "init_on_alloc=0 quiet")
    stock, control, mine = read_results(tmp_path / "out")
    made = mine.provenance
    assert made.tried == f"{_PATCH.name}, booted with init_on_alloc=0 quiet"
    assert not stock.provenance.tried
    assert len(made.digests[f"patch {_PATCH.name}"]) == 64
    assert made.boot.endswith("init_on_alloc=0 quiet")
    before = len(ran)
    command = shlex.split(made.command)
    assert main([*command[1:], "--out", str(tmp_path / "again")]) == 0
    assert len(ran) == before
    again = read_results(tmp_path / "again")
    assert again == (stock, control, mine)
    # Stored results know the arm, though it has no file.
    dataset = read_dataset(tmp_path / "out")
    assert dataset.catalog.arms["mine"].tried and not dataset.notes
    capsys.readouterr()
    assert main(["report", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out.startswith("mine against stock, ")
    page = (tmp_path / "out/report.html").read_text()
    assert "against stock</h1>" in page and made.tried in page
    capsys.readouterr()
    assert main(["export", str(tmp_path / "out")]) == 0
    arm = made.command[made.command.index("--arm mine ") :]
    assert _PATCH.name in arm and arm.endswith("--boot 'init_on_alloc=0 quiet'")
    assert f"{arm}`" in capsys.readouterr().out


def test_nothing_changed_is_said_when_it_is_so(tried: Callable[..., str], ran: list[Guest]) -> None:
    printed = tried(_MOVING)
    assert "Nothing changed.\n" in printed
    said = " ".join(printed.split())
    assert "Page faults, kernel instructions, TLBI, DSB, ISB, broadcast TLBI, IPI" in said
    assert " are equal in 1 cell of populate." in said
    # There is no function to look for.
    assert len(ran) == 3


def test_two_arms_are_each_compared_with_stock(tried: Callable[..., str], ran: list[Guest]) -> None:
    arms = ("--arm", "first", _PATCH, "--arm", "all", _PATCH, "--boot", "init_on_alloc=0")
    printed = tried(*arms)
    assert f"all against stock, 6.12 on neoverse-n1: {_PATCH.name}, booted with" in printed
    # Stock, its control and both arms; again with functions, the first arm and the second.
    assert len(ran) == 4 + 3 + 1
    one, both = json.loads(tried(*arms, "--json"))["arms"]
    assert (one["arm"], both["arm"]) == ("first", "all")
    assert both["cells"][0]["counts"]["instructions_kernel"] == {
        "stock": 2500 * _FAULTS, "arm": 2010 * _FAULTS, "chance": 20_000
    }  # fmt: skip


def test_a_patch_that_does_not_apply_is_named_before_anything_is_built(
    tried: Callable[..., str], configured_cache: Path, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.patch"
    bad.write_text(_PATCH.read_text().replace("int nr_pages = 1;", "int nr_pages = 2;"))
    said = tried(bad, status=2)
    assert f"{bad.name} does not apply to Linux 6.12.999 (patch failed: mm/memory.c:" in said
    assert not (configured_cache / "images").exists()


def test_a_matrix_runs_the_same_cells_in_each_setting(
    tried: Callable[..., str], ran: list[Guest], tmp_path: Path
) -> None:
    printed = tried(_PATCH, "--matrix", "--quick")
    head, _, worse, *_ = printed.splitlines()
    assert head.startswith("tried against stock, 10 settings: ")
    assert worse.startswith("populate store 4k 8 MiB, ")
    assert "10 of 10" in printed
    assert any("kpti=off" in guest.boot for guest in ran)
    assert any(guest.board == ("virtualization=on",) for guest in ran)
    assert {guest.cpus for guest in ran} == {1, 4}
    settings = {result.cell.setting for result in read_results(tmp_path / "out")}
    assert {"", "kpti-off", "el2"} < settings
    # The command of a cell has its setting.
    command = next(
        result.provenance.command
        for result in read_results(tmp_path / "out")
        if (result.cell.arm, result.cell.setting) == ("tried", "kpti-off")
    )
    assert "--setting kpti-off" in command
    assert main([*shlex.split(command)[1:], "--out", str(tmp_path / "again")]) == 0
    again = read_results(tmp_path / "again")
    assert {result.cell.setting for result in again} == {"kpti-off"}
