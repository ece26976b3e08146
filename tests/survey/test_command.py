# SPDX-License-Identifier: GPL-2.0
"""`firsttouch survey` as a user runs it: here, in guests, and with requests it cannot carry out."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from firsttouch.errors import UserError
from firsttouch.progress import Step
from firsttouch.build.sources import releases
from firsttouch.survey import run as taking
from firsttouch.survey.host import Facts
from firsttouch.survey.tasks import Task
from firsttouch.survey.samples import Sample, Samples
from tests.conftest import Finished, Firsttouch
from tests.support.surveys import facts

PAGE = os.sysconf("SC_PAGESIZE")
# Enough for each first touch once, on a machine that is busy with other tests.
SECONDS = 20


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        (["--seconds", "0"], ["give 5 to 3600"]),
        (["--seconds", "-1"], ["give 5 to 3600"]),
        (["--seconds", "many"], ["invalid int value: 'many'"]),
        (["--guest", "stok"], ["unknown arm 'stok'", "did you mean 'stock'"]),
        (["--guest", "stock", "--machine", "neovers"], ["unknown machine 'neovers'"]),
        (["--guest", "stock", "--release", "5.4"], ["unknown release '5.4'"]),
        (["--guest", "stock", "--seconds", "9"], ["--seconds does not go with --guest"]),
        (["--release", "6.12"], ["--release goes with --guest"]),
        (["--machine", "neoverse-n1"], ["--machine goes with --guest"]),
        (["--out", "/proc/firsttouch"], ["cannot write to /proc/firsttouch", "--out"]),
        (["--outt", "x"], ["unrecognized arguments"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_bad_request_is_refused_in_one_sentence(
    firsttouch: Firsttouch, arguments: list[str], fragments: list[str]
) -> None:
    done = firsttouch("survey", *arguments)
    assert done.returncode == 2, done.stderr
    assert not done.stdout
    (sentence,) = done.stderr.strip().splitlines()
    assert sentence.startswith("firsttouch: ")
    for fragment in fragments:
        assert fragment in sentence


def test_another_architecture_is_refused(monkeypatch: pytest.MonkeyPatch, reporter: Any) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    with pytest.raises(UserError, match=r"riscv64.*--guest stock"):
        taking.take_here(5, reporter)


@pytest.mark.parametrize(
    ("seconds", "memory", "expected"),
    [
        (4, 16 << 30, 64 << 20),  # 6 rounds of 9 kinds, half as costly again: 101 MB fit
        (40, 16 << 30, 256 << 20),  # no more than shows
        (40, 128 << 20, 32 << 20),  # a quarter of what is free
        (0.1, 16 << 30, 8 << 20),  # no less than shows
    ],
)
def test_how_much_is_touched(seconds: float, memory: int, expected: int) -> None:
    machine: Facts = facts(memory=memory)
    pages = (8 << 20) // 4096
    probe = {"metrics": {"elapsed_ns": pages * 2_000}}
    assert taking._size(machine, probe, seconds) == expected


_FAKE = """#!/bin/sh
echo "$1" >> "$(dirname "$0")/order"
case $1 in
    slow) sleep 1 ;;
    gone) echo '{"metrics": {}, "unavailable": {"page_faults": "no such thing"}}'; exit 0 ;;
    bad) echo "ftbench: bad: the memory holds 1, not 0" >&2; exit 1 ;;
    silent) exit 3 ;;
    twice) echo '{"metrics": {"n": 1}, "unavailable": {}}' ;;
esac
echo '{"metrics": {"n": 1}, "unavailable": {}}'
"""


class Fake:
    """A survey with a program in ftbench's place that does as its argument says."""

    def __init__(self, directory: Path, seconds: float) -> None:
        program = directory / "ftbench"
        program.write_text(_FAKE)
        program.chmod(0o755)
        self.order = directory / "order"
        step = Step(Console(quiet=True), "Surveying", "s", 10)
        self.taker = taking._Taker(program, step, seconds)

    def rounds(self, *tasks: str, rounds: int = 2, until: float = 60) -> list[Sample]:
        self.taker.rounds([Task(name, (name,)) for name in tasks], rounds, until)
        return self.taker.samples


def test_rounds_are_interleaved_to_and_fro(tmp_path: Path) -> None:
    fake = Fake(tmp_path, 60)
    samples = fake.rounds("a", "b", "c")
    assert fake.order.read_text().split() == ["a", "b", "c", "c", "b", "a", "a", "b", "c"]
    assert [sample.round for sample in samples] == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_what_cannot_be_measured_is_tried_once(tmp_path: Path) -> None:
    samples = Samples(Fake(tmp_path, 60).rounds("a", "gone", "bad", "silent"))
    tasks = [sample.task for sample in samples.all]
    assert {name: tasks.count(name) for name in set(tasks)} == {
        "a": 3, "gone": 1, "bad": 1, "silent": 1,
    }  # fmt: skip
    assert samples.reason("gone") == "no such thing"
    assert samples.reason("bad") == "ftbench: bad: the memory holds 1, not 0"
    assert samples.reason("silent") == "ended with status 3"
    assert {sample.task for sample in samples.failures()} == {"bad", "silent"}


def test_a_task_that_repeats_itself_has_several_samples(tmp_path: Path) -> None:
    assert len(Fake(tmp_path, 60).rounds("twice", rounds=1)) == 4


def test_the_budget_ends_the_rounds(tmp_path: Path) -> None:
    fake = Fake(tmp_path, 2)
    assert 1 <= len(fake.rounds("slow", rounds=9, until=1.5)) <= 2
    assert Samples(fake.taker.samples).reason("never run").startswith("there was no time for it")


def test_a_task_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taking, "_TIMEOUT", 0.2)
    (sample,) = Fake(tmp_path, 60).rounds("slow", rounds=3)
    assert sample.error == "took longer than 0.2 s"


@pytest.fixture(scope="module")
def surveyed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Finished, Path]:
    """A survey of the machine that runs the tests, with little time."""
    directory = tmp_path_factory.mktemp("survey")
    done = Firsttouch(directory)("survey", "--seconds", str(SECONDS), "--out", "here")
    return done, directory / "here/survey.json"


@pytest.mark.long
def test_a_survey_of_this_machine_ends_in_its_sentences(
    surveyed: tuple[Finished, Path],
) -> None:
    done, _ = surveyed
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 100
    what_follows = done.stdout.partition("What follows")[2]
    for about in ("double fault", "cost", "colours", "today"):
        assert re.search(rf"^{about}", what_follows, re.M), about
    # Progress is for people and goes elsewhere.
    assert "Surveying" in done.stderr and "Surveying" not in done.stdout


@pytest.mark.long
def test_a_survey_keeps_all_its_samples(surveyed: tuple[Finished, Path]) -> None:
    _, file = surveyed
    survey = json.loads(file.read_text())
    assert survey["schema"] == 1
    assert survey["where"] == {"kind": "machine"}
    assert survey["facts"]["page_size"] == PAGE
    assert {sample["task"] for sample in survey["samples"]} <= set(survey["tasks"])
    store = [s for s in survey["samples"] if s["task"] == "touch base store"]
    assert store and [sample["round"] for sample in store] == list(range(len(store)))
    for sample in store:
        size = sample["line"]["params"]["size"]
        assert sample["line"]["metrics"]["page_faults"] == size // PAGE
    found = {t["kind"]: t for t in survey["findings"]["touches"] if t["page"] == "base"}
    assert found["store"]["faults"] == found["madvise"]["faults"] == 1
    assert found["load-store"]["faults"] == 2
    assert survey["sentences"][0]["about"] == "double fault"


@pytest.mark.long
def test_what_is_unavailable_has_a_reason(surveyed: tuple[Finished, Path]) -> None:
    _, file = surveyed
    survey = json.loads(file.read_text())
    for counter in survey["findings"]["counters"]:
        assert counter["figures"] or counter["unavailable"]
    for touch in survey["findings"]["touches"]:
        assert touch["elapsed"] or touch["unavailable"]


@pytest.mark.long
def test_a_survey_keeps_its_time(surveyed: tuple[Finished, Path]) -> None:
    done, _ = surveyed
    took = re.search(r"Surveying: done, \d+ s in (\d+) s", done.stderr)
    assert took, done.stderr
    # The task that was begun is finished.
    assert int(took[1]) <= SECONDS + 5


def test_an_interrupted_survey_leaves_nothing_half_done(firsttouch: Firsttouch) -> None:
    process = firsttouch.start("survey", "--seconds", "60")
    assert process.stderr is not None
    while "Surveying" not in process.stderr.readline():
        assert process.poll() is None
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "interrupted" in rest and "Traceback" not in rest
    assert not list((firsttouch.directory / "out").iterdir())


@pytest.mark.kernel
@pytest.mark.parametrize("release", sorted(releases()))
@pytest.mark.parametrize(("arm", "faults"), [("stock", 2), ("on", 1)])
def test_a_guest_finds_the_double_fault_or_its_absence(
    firsttouch: Firsttouch, release: str, arm: str, faults: int
) -> None:
    done = firsttouch("survey", "--guest", arm, "--release", release, "--out", "here")
    assert done.returncode == 0, done.stderr
    survey = json.loads((firsttouch.directory / f"here/survey-{arm}.json").read_text())
    assert survey["where"]["kind"] == "guest"
    assert survey["facts"]["architecture"] == "arm64"
    touches = {t["kind"]: t for t in survey["findings"]["touches"] if t["page"] == "base"}
    for atomic in ("ldadd", "swp", "cas", "casp", "ldxr"):
        assert touches[atomic]["faults"] == faults, atomic
    assert touches["store"]["faults"] == 1
    assert survey["findings"]["zero_pages"] == (1 if arm == "stock" else 4)
    said = {s["about"]: s["text"] for s in reversed(survey["sentences"])}
    if arm == "stock":
        assert said["double fault"].startswith("Atomics fault twice here")
        assert said["cost"].startswith("The double fault costs")
    else:
        assert said["double fault"].startswith("Atomics do not fault twice here")
    assert "What follows" in done.stdout
