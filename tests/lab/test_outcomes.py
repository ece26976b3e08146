# SPDX-License-Identifier: GPL-2.0
"""A guest's outcome: each command's lines, and the regions that they name among the PMU's."""

import json
from pathlib import Path

import pytest

from firsttouch.catalog.machines import load_machine
from firsttouch.errors import GuestError
from firsttouch.lab import outcomes
from firsttouch.lab.outcomes import guest_outcome
from firsttouch.tables import Json
from firsttouch.vm.guest import Counts, Guest
from firsttouch.vm.supervision import Done, GuestOutput
from tests.support.results import make_region


def _measure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: list[Done], counts: Counts | None,
    log: str = "",
) -> dict[str, Json]:  # fmt: skip
    (tmp_path / "log").write_text(log)
    ended = GuestOutput(tuple(done), counts)
    monkeypatch.setattr(outcomes, "run_guest", lambda *_, **__: ended)
    guest = Guest(Path("i"), Path("i"), load_machine("neoverse-n1"), (), ("/ftbench",))
    return guest_outcome(guest, tmp_path / "log")


def _done(*lines: dict[str, Json]) -> Done:
    return Done(0, tuple(json.dumps(line) for line in lines))


def test_regions_go_to_the_commands_that_name_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    regions = [make_region({"instructions": number}) for number in range(3)]
    done = [_done({"regions": ["a", "b"]}), _done({"files": {}}, {"regions": ["c"]})]
    outcome = _measure(tmp_path, monkeypatch, done, Counts(tuple(regions), ("tlb",)))
    assert outcome == {
        "commands": [
            {"lines": [{"regions": ["a", "b"]}], "regions": regions[:2]},
            {"lines": [{"files": {}}, {"regions": ["c"]}], "regions": regions[2:]},
        ],
        "not_modelled": ["tlb"],
    }


def test_without_a_pmu_nothing_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = _measure(tmp_path, monkeypatch, [_done({"regions": ["a"]})], None)
    assert outcome == {"commands": [{"lines": [{"regions": ["a"]}], "regions": []}]}


@pytest.mark.parametrize(
    ("done", "log", "complaint"),
    [
        ([_done({"regions": ["a", "b"]})], "", "counted 1 regions, but .* name 2"),
        ([_done({"regions": []})], "", "counted 1 regions, but .* name 0"),
        ([Done(0, ())], "", "command 0 of the guest printed nothing"),
        ([_done({"regions": ["a"]}), Done(2, ())], "noise\n[1.0] ftbench: no such thing\n",
         "command 1 of the guest failed with status 2: ftbench: no such thing"),
        ([Done(0, ("{}", "Segmentation fault"))], "", "not a JSON object: 'Segmentation fault'"),
    ],
)  # fmt: skip
def test_what_cannot_be_trusted_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: list[Done],
    log: str, complaint: str,
) -> None:  # fmt: skip
    with pytest.raises(GuestError, match=complaint) as error:
        _measure(tmp_path, monkeypatch, done, Counts((make_region(),), ()), log)
    assert error.value.detail == log.splitlines()
