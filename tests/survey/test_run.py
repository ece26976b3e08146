# SPDX-License-Identifier: GPL-2.0
"""How tasks are run and repeated, with a fake ftbench."""

from pathlib import Path

import pytest

from firsttouch.survey.run import PRICES, run_rounds
from firsttouch.survey.tasks import Sample, Task, touch_tasks
from tests.support.surveys import HOST

_FAKE = """#!/bin/sh
echo "$1" >> "$(dirname "$0")/order"
case $1 in
    hung) exec sleep 60 ;;
    gone) echo '{"metrics": {}, "unavailable": {"page_faults": "no such thing"}}'; exit 0 ;;
    bad) echo "ftbench: bad: the memory holds 1, not 0" >&2; exit 1 ;;
    silent) exit 3 ;;
    torn) echo '{"metrics": {"n": 1'; exit 0 ;;
    other) echo '{"metrics": {"n": "one"}}'; exit 0 ;;
    bytes) printf '{"metrics": {}, "unavailable": {"n": "no such thing \\377"}}\\n'; exit 0 ;;
    twice) echo '{"metrics": {"n": 1}, "params": {"size": 4096}}' ;;
esac
echo '{"metrics": {"n": 1}, "unavailable": {}}'
"""


class _Fake:
    """A program that does as its argument says, and takes 1 s each by its clock."""

    def __init__(self, directory: Path) -> None:
        self._program, self._order = directory / "ftbench", directory / "order"
        self._program.write_text(_FAKE)
        self._program.chmod(0o755)

    @property
    def order(self) -> list[str]:
        return self._order.read_text().split() if self._order.exists() else []

    def run(self, *names: str, seconds: int = 9, timeout: float = 60) -> list[Sample]:
        tasks = [Task(name, (name,)) for name in names]
        ran = run_rounds(
            self._program, tasks, seconds, timeout=timeout, clock=lambda: float(len(self.order))
        )
        return [sample for sample, _ in ran]


@pytest.fixture
def fake(tmp_path: Path) -> _Fake:
    return _Fake(tmp_path)


def test_rounds_alternate_their_order_until_the_time_is_spent(fake: _Fake) -> None:
    samples = fake.run("a", "b", "c", seconds=8)
    assert fake.order == ["a", "b", "c", "c", "b", "a", "a", "b"]
    assert [sample.task for sample in samples] == fake.order
    assert [sample.round for sample in samples] == [0, 0, 0, 1, 1, 1, 2, 2]


def test_a_task_without_figures_runs_once(fake: _Fake) -> None:
    names = ("gone", "bad", "silent", "torn", "other", "bytes")
    samples = {sample.task: sample for sample in fake.run("a", *names, seconds=12)}
    assert sorted(fake.order) == sorted([*["a"] * 6, *names])
    assert samples["gone"].unavailable == "no such thing"
    assert samples["bytes"].unavailable == "no such thing \N{REPLACEMENT CHARACTER}"
    assert samples["bad"].error == "ftbench: bad: the memory holds 1, not 0"
    assert samples["silent"].error == "ended with status 3"
    assert "no JSON object" in samples["torn"].error
    assert "metrics.n is 'one'" in samples["other"].error


def test_the_change_to_huge_pages_is_paid_by_no_figure() -> None:
    """The first touch of huge pages after base pages took three times as long in each round."""
    order = [task.name for task in touch_tasks(HOST)]
    first = order.index("touch 2m store")
    assert order[first - 1] == "settle 2m" and "settle 2m" in PRICES
    assert order[first - 2].startswith("touch base ")
