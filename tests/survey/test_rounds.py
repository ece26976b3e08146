# SPDX-License-Identifier: GPL-2.0
"""How tasks are run and repeated, with a fake ftbench; and how much they touch."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from firsttouch.errors import GuestError
from firsttouch.survey.rounds import TaskRunner
from firsttouch.survey.samples import Sample, Samples, figure
from firsttouch.survey.tasks import PROBE_SIZE, Task, touch_size, touch_tasks
from tests.support.surveys import SOME_HOST

_FAKE = """#!/bin/sh
echo "$1" >> "$(dirname "$0")/order"
case $1 in
    hung) exec sleep 60 ;;
    gone) echo '{"metrics": {}, "unavailable": {"page_faults": "no such thing"}}'; exit 0 ;;
    bad) echo "ftbench: bad: the memory holds 1, not 0" >&2; exit 1 ;;
    silent) exit 3 ;;
    empty) exit 0 ;;
    torn) echo '{"metrics": {"n": 1'; exit 0 ;;
    other) echo '{"metrics": {"n": "one"}}'; exit 0 ;;
    bytes) printf '{"metrics": {}, "unavailable": {"n": "no such thing \\377"}}\\n'; exit 0 ;;
    twice) echo '{"metrics": {"n": 1}, "unavailable": {}}' ;;
esac
echo '{"metrics": {"n": 1}, "unavailable": {}}'
"""


class Fake:
    """A runner of a program that does as its argument says, and takes 1 s each by its clock."""

    def __init__(self, directory: Path, seconds: float = 60, timeout: float = 60) -> None:
        program = directory / "ftbench"
        program.write_text(_FAKE)
        program.chmod(0o755)
        self._order = directory / "order"
        self.reports: list[float] = []
        self.runner = TaskRunner(
            program,
            seconds,
            self.reports.append,
            timeout=timeout,
            clock=lambda: float(len(self.order)),
        )

    @property
    def order(self) -> list[str]:
        """The tasks that were run, in order."""
        return self._order.read_text().split() if self._order.exists() else []

    def rounds(self, *tasks: str, rounds: int | None = 2, until: float = 60) -> list[Sample]:
        self.runner.rounds([Task(name, (name,)) for name in tasks], until, rounds)
        return self.runner.samples


def test_rounds_alternate_their_order(tmp_path: Path) -> None:
    fake = Fake(tmp_path)
    samples = fake.rounds("a", "b", "c")
    assert fake.order == ["a", "b", "c", "c", "b", "a", "a", "b", "c"]
    assert [sample.task for sample in samples] == fake.order
    assert [sample.round for sample in samples] == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_what_cannot_be_measured_is_tried_once(tmp_path: Path) -> None:
    fake = Fake(tmp_path)
    samples = Samples(fake.rounds("a", "gone", "bad", "silent"))
    assert sorted(fake.order) == ["a", "a", "a", "bad", "gone", "silent"]
    assert samples.reason("gone") == "no such thing"
    assert samples.reason("bad") == "ftbench: bad: the memory holds 1, not 0"
    assert samples.reason("silent") == "ended with status 3"
    assert {sample.task for sample in samples.failures()} == {"bad", "silent"}


def test_a_line_that_is_not_of_ftbench_is_a_failure(tmp_path: Path) -> None:
    samples = Samples(Fake(tmp_path).rounds("torn", "other"))
    assert samples.reason("torn") == """printed '{"metrics": {"n": 1', which is not a JSON object"""
    assert "metrics.n is 'one'" in samples.reason("other")
    assert {sample.task for sample in samples.failures()} == {"torn", "other"}


def test_bytes_that_are_not_utf_8_are_replaced(tmp_path: Path) -> None:
    assert (
        Samples(Fake(tmp_path).rounds("bytes")).reason("bytes")
        == "no such thing \N{REPLACEMENT CHARACTER}"
    )


def test_a_task_that_repeats_itself_has_several_samples(tmp_path: Path) -> None:
    samples = Fake(tmp_path).rounds("twice", rounds=1)
    assert [sample.round for sample in samples] == [0, 0, 1, 1]


def test_the_budget_ends_the_rounds(tmp_path: Path) -> None:
    fake = Fake(tmp_path, seconds=10)
    fake.rounds("a", "b", rounds=9, until=4.5)
    # The fifth had begun before 4.5 s were spent.
    assert fake.order == ["a", "b", "b", "a", "a"]
    assert fake.runner.left() == 5
    fake.rounds("c", rounds=99, until=10)
    assert fake.order[5:] == ["c"] * 5
    assert fake.reports == list(range(1, 11))
    assert Samples(fake.runner.samples).reason("never run").startswith("there was no time for it")


@pytest.mark.parametrize("until", [30, 60, 90])
def test_all_of_the_time_is_used(tmp_path: Path, until: int) -> None:
    fake = Fake(tmp_path, seconds=until)
    fake.rounds("a", "b", "gone", rounds=None, until=until)
    assert len(fake.order) == until
    assert fake.order.count("gone") == 1


def test_nothing_is_repeated_where_nothing_can_be_measured(tmp_path: Path) -> None:
    fake = Fake(tmp_path)
    fake.rounds("gone", "bad", rounds=None)
    assert fake.order == ["gone", "bad"]


def test_more_samples_make_a_figure_more_certain() -> None:
    few, many = figure([1.0, 2.0, 3.0] * 3), figure([1.0, 2.0, 3.0] * 12)
    assert few and many
    assert few.relative_spread == many.relative_spread
    assert many.uncertainty == pytest.approx(few.uncertainty / 2)


def test_a_task_that_hangs_is_killed(tmp_path: Path) -> None:
    (sample,) = Fake(tmp_path, timeout=0.2).rounds("hung", rounds=3)
    assert sample.error == "took longer than 0.2 s"


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("bad", "ftbench bad failed: ftbench: bad: the memory holds 1, not 0"),
        ("torn", "ftbench torn failed: its last line is not JSON"),
        ("empty", "ftbench empty failed: its last line is not JSON"),
    ],
)
def test_a_command_that_the_survey_needs_must_not_fail(
    tmp_path: Path, command: str, problem: str
) -> None:
    with pytest.raises(GuestError, match=f"^{problem}$"):
        Fake(tmp_path).runner.must(command)


@pytest.mark.parametrize(
    ("seconds", "memory", "expected"),
    [
        (4, 16 << 30, 32 << 20),  # 12 rounds of 9 kinds, half as costly again: 51 MB fit
        (40, 16 << 30, 256 << 20),  # no more than shows
        (40, 128 << 20, 32 << 20),  # a quarter of what is free
        (0.1, 16 << 30, 8 << 20),  # no less than shows
    ],
)
def test_how_much_is_touched(seconds: float, memory: int, expected: int) -> None:
    host = dataclasses.replace(SOME_HOST, memory=memory)
    pages = PROBE_SIZE // host.page_size
    assert touch_size(host, pages * 2_000, seconds) == expected


def test_the_change_to_huge_pages_is_paid_by_no_figure() -> None:
    """The first touch of huge pages after base pages took three times as long in each round."""
    host = dataclasses.replace(SOME_HOST, thp={"hpage_pmd_size": str(2 << 20)})
    order = [task.name for task in touch_tasks(host, 1 << 25)]
    first = order.index("touch 2m store")
    assert order[first - 1] == "settle 2m madvise"
    assert order[first - 2].startswith("touch base ")
