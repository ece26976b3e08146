# SPDX-License-Identifier: GPL-2.0
"""A run measures only what the store lacks, and once; figures come from the store."""

import concurrent.futures
import itertools
import json
import shlex
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firsttouch.building.store import store_root
from firsttouch.cli.main import full_parser as parser
from firsttouch.cli.options import settings_of
from firsttouch.errors import GuestError, UserError
from firsttouch.lab.cells import Cell
from firsttouch.lab.plan import Request, make_plan
from firsttouch.lab.results import Result, read_results
from firsttouch.tables import Json
from firsttouch.vm.guest import Guest
from firsttouch.vm.qemu import guest_key
from firsttouch.vm.supervision import StoppedError
from tests.lab.conftest import FakeLab, arm_of
from tests.support.contract import real_contract

_SMALL = Request(
    experiments=("populate",), settings={"page": ("4k",)}, arms=("stock", "on"), size=1 << 24
)


def _asked(lab: FakeLab, name: str = "out", **changes: object) -> Request:
    return replace(_SMALL, out=lab.out / name, **changes)  # type: ignore[arg-type]


def _lines(request: Request) -> list[str]:
    return (request.out / "results.jsonl").read_text().splitlines()


def test_a_guest_has_the_cpus_of_its_cell_and_the_guard_checks_each_number(
    fake_lab: FakeLab,
) -> None:
    request = _asked(
        fake_lab, experiments=("several-cpus",), settings={"by": ("ldadd",)}, arms=("on", "stock")
    )
    outcome = fake_lab.run(request)
    wanted = [1, 2, 4, 8]
    assert sorted(guest.cpus for guest in fake_lab.ran) == sorted(wanted * 2)
    assert all(guest.commands[0].endswith(f"--cpus {guest.cpus}") for guest in fake_lab.ran)
    assert [guest.cpus for guest in fake_lab.guarded] == wanted
    assert [result.cell.cpus for result in outcome.results] == [1, 1, 2, 2, 4, 4, 8, 8]


def test_each_cell_is_run_once_and_written_in_order(fake_lab: FakeLab) -> None:
    outcome = fake_lab.run(_asked(fake_lab))
    assert len(fake_lab.ran) == len(outcome.results) == 16
    assert (
        sorted(arm_of(guest, "stock", "on") for guest in fake_lab.ran) == ["on"] * 8 + ["stock"] * 8
    )
    assert read_results(fake_lab.out / "out") == outcome.results
    plan = make_plan(_asked(fake_lab), "6.12", real_contract())
    assert [result.cell for result in outcome.results] == list(plan.cells)


def test_a_result_names_the_source_of_its_kernel_and_its_key_does_not(fake_lab: FakeLab) -> None:
    (first, *_) = fake_lab.run(_asked(fake_lab)).results
    assert first.provenance.digests["kernel source"] == fake_lab.source.sha256
    fake_lab.source = replace(fake_lab.source, sha256="1" * 64)
    (again, *_) = fake_lab.run(_asked(fake_lab, "again")).results
    assert again.provenance.digests["kernel source"] == "1" * 64
    assert again.key == first.key


def test_a_second_run_with_another_out_runs_nothing(fake_lab: FakeLab) -> None:
    first, other = _asked(fake_lab, "one"), _asked(fake_lab, "other")
    fake_lab.run(first)
    fake_lab.ran.clear()
    guarded = list(fake_lab.guarded)
    assert not fake_lab.run(other).ran
    assert not fake_lab.ran
    assert fake_lab.guarded == guarded
    assert [guest.cpus for guest in guarded] == [1]
    assert _lines(first) == _lines(other)


def _keys(results: tuple[Result, ...]) -> list[str]:
    return [result.key for result in results]


def test_a_subset_of_one_guests_cells_has_the_same_keys_and_figures(fake_lab: FakeLab) -> None:
    def asked(name: str, **settings: str) -> Request:
        values = {key: (value,) for key, value in settings.items()}
        return Request(experiments=("set-conflict",), arms=("stock",), settings=values,
                       out=fake_lab.out / name)  # fmt: skip

    part = fake_lab.run(asked("part", n="3"))
    assert len(fake_lab.ran) == 1
    whole = fake_lab.run(asked("whole"))
    assert len(fake_lab.ran) == 1
    assert 0 < len(part.results) < len(whole.results)
    by_cell = {result.cell.identity: result for result in whole.results}
    assert len(set(_keys(whole.results))) == len(whole.results)
    for result in part.results:
        assert by_cell[result.cell.identity] == result
    assert len(_lines(asked("part"))) == len(part.results)


def test_a_result_that_the_store_lost_is_measured_again(fake_lab: FakeLab) -> None:
    outcome = fake_lab.run(_asked(fake_lab))
    before = _lines(_asked(fake_lab))
    lost = fake_lab.ran[3]
    fake_lab.ran.clear()
    (file,) = store_root().glob(f"outcomes/*/{guest_key(lost)}.json")
    file.unlink()
    assert fake_lab.run(_asked(fake_lab)).results == outcome.results
    assert fake_lab.ran == [lost]
    assert _lines(_asked(fake_lab)) == before


def test_what_out_had_is_neither_kept_nor_taken_for_a_result(fake_lab: FakeLab) -> None:
    request = _asked(fake_lab)
    fake_lab.run(_asked(fake_lab, settings={"page": ("2m",)}))
    file = request.out / "results.jsonl"
    file.write_text(file.read_text() + '{"cut off')
    outcome = fake_lab.run(request)
    assert len(_lines(request)) == len(outcome.results) == 16
    assert {json.loads(line)["cell"]["params"]["page"] for line in _lines(request)} == {"4k"}


def test_the_command_of_a_cell_on_a_tree_of_ones_own_runs_it_again(
    fake_lab: FakeLab, fake_linux: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_linux.rename(tmp_path / "my linux")
    monkeypatch.chdir(tmp_path)
    whole = fake_lab.run(_asked(fake_lab, source=Path("my linux")))
    wanted = whole.results[3]
    # Pasted elsewhere.
    monkeypatch.chdir(fake_lab.parts)
    program, *words = shlex.split(wanted.provenance.command)
    assert program == "firsttouch"
    options = parser().parse_args(words)
    request = _asked(
        fake_lab, "again", source=options.source, machines=tuple(options.machine),
        experiments=tuple(options.experiment), arms=tuple(options.arm),
        size=options.size, settings=settings_of(options.set),
    )  # fmt: skip
    fake_lab.ran.clear()
    assert fake_lab.run(request).results == (wanted,)
    assert not fake_lab.ran


def test_one_failed_cell_leaves_the_others(fake_lab: FakeLab) -> None:
    fake_lab.failing = {"--by swp ": GuestError("it broke", ["the log"])}
    outcome = fake_lab.run(_asked(fake_lab))
    assert {cell.params["by"] for cell, _ in outcome.failures} == {"swp"}
    assert len(outcome.failures) == 2
    assert len(outcome.results) == len(_lines(_asked(fake_lab))) == 14
    fake_lab.failing = {}
    fake_lab.ran.clear()
    again = fake_lab.run(_asked(fake_lab))
    assert not again.failures
    assert len(fake_lab.ran) == 2
    assert len(again.results) == 16


def test_cells_that_were_not_asked_for_do_not_fail_the_run(fake_lab: FakeLab) -> None:
    """A guest of many cells runs them all; only one of those that fail was requested."""
    fake_lab.failing = {"set-conflict": GuestError("it broke")}
    request = Request(experiments=("set-conflict",), arms=("stock",), settings={"n": ("3",)},
                      out=fake_lab.out)  # fmt: skip
    outcome = fake_lab.run(request)
    failed: list[Cell] = [cell for cell, _ in outcome.failures]
    assert failed
    assert {cell.params["n"] for cell in failed} == {3}


def test_what_an_interrupted_run_has_finished_is_kept(fake_lab: FakeLab) -> None:
    fake_lab.failing = {"--by madvise ": KeyboardInterrupt()}
    request = _asked(fake_lab, jobs=1)
    with pytest.raises(KeyboardInterrupt):
        fake_lab.run(request)
    done = len(fake_lab.ran)
    assert 0 < done < 16
    assert len(_lines(request)) == done
    fake_lab.failing = {}
    fake_lab.run(request)
    assert len(fake_lab.ran) == 16


def test_an_interrupt_while_guests_are_still_handed_out_stops_those_that_run(
    fake_lab: FakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped: list[bool] = []
    started = threading.Event()

    def runs_until_stopped(
        guest: Guest, log: Path, *, stop: threading.Event | None = None, **more: Any
    ) -> Mapping[str, Json]:
        if stop is None:
            return fake_lab.guest_outcome(guest, log, **more)
        started.set()
        stopped.append(stop.wait(20))
        raise StoppedError

    # The second guest is never handed out: Ctrl-C arrives while the first runs.
    submit = concurrent.futures.ThreadPoolExecutor.submit
    handed = itertools.count()

    def interrupted(*args: Any, **named: Any) -> concurrent.futures.Future[Any]:
        if next(handed):
            started.wait(20)
            raise KeyboardInterrupt
        return submit(*args, **named)

    monkeypatch.setattr("firsttouch.lab.outcomes.guest_outcome", runs_until_stopped)
    monkeypatch.setattr(concurrent.futures.ThreadPoolExecutor, "submit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fake_lab.run(_asked(fake_lab, jobs=2))
    assert stopped == [True]


def test_a_guest_that_hides_the_double_fault_stops_the_run(
    fake_lab: FakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.lab.conftest.GUARDED_FAULTS", 1024)
    with pytest.raises(GuestError, match=r"1,024 page faults .* hides the double fault"):
        fake_lab.run(_asked(fake_lab))
    assert not fake_lab.ran


def test_a_cpu_that_qemu_has_not_is_named_before_anything_is_built(
    fake_lab: FakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("firsttouch.lab.run.qemu_cpus", lambda: ("cortex-a53", "neoverse-v1"))
    monkeypatch.setattr("firsttouch.lab.run.build_parts", lambda *_: pytest.fail("built"))
    with pytest.raises(UserError, match=r"neoverse-n1\.toml: cpu is 'neoverse-n1'.*'neoverse-v1'"):
        fake_lab.run(_asked(fake_lab))
