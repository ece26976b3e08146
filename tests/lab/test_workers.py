# SPDX-License-Identifier: GPL-2.0
"""Workers that boot real guests: the results of a share are those of this host alone."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from tests.conftest import Firsttouch

pytestmark = pytest.mark.kernel

# A guest on a stock kernel, two on a changed one, and the guard's.
_PLAN = (
    "--experiment", "populate", "--set", "by=ldadd", "--set", "page=4k", "--size", "4M",
    "--arm", "stock", "--arm", "off", "--arm", "on",
)  # fmt: skip
# What a worker finds in the recording needs the programs, for their symbols.
_RECORDED = ("--experiment", "doubles", "--set", "program=bc", "--arm", "stock")


def _finish(process: subprocess.Popen[str]) -> str:
    said, errors = process.communicate(timeout=900)
    assert process.returncode == 0, errors
    return said + errors


@pytest.mark.parametrize(
    ("plan", "cells"), [(_PLAN, 3), pytest.param(_RECORDED, 1, marks=pytest.mark.regress)]
)
def test_two_workers_give_the_bytes_of_here(
    firsttouch: Firsttouch, own_outcomes: Callable[[str], Mapping[str, str]], tmp_path: Path,
    plan: Sequence[str], cells: int,
) -> None:  # fmt: skip
    here = firsttouch("lab", *plan, "--out", "here", **own_outcomes("store-here"))
    assert here.returncode == 0, here.stderr
    front = firsttouch.start(
        "lab", *plan, "--out", "there", "--on", "./share", "--audit", "100%",
        **own_outcomes("store-there"),
    )  # fmt: skip
    while not list((tmp_path / "share").glob("plans/*/plan.json")):
        assert front.poll() is None, front.communicate()
    workers = [
        firsttouch.start(
            "worker", "./share", "--jobs", "1", "--idle", "5",
            XDG_CACHE_HOME=str(tmp_path / f"worker-{number}"),
        )
        for number in range(2)
    ]  # fmt: skip
    said = _finish(front)
    for worker in workers:
        _finish(worker)
    for name in ("results.jsonl", "summary.json"):
        assert (tmp_path / "here" / name).read_bytes() == (tmp_path / "there" / name).read_bytes()
    hosts = json.loads((tmp_path / "there" / "hosts.json").read_text())
    assert len({ran["worker"] for ran in hosts["guests"]}) == min(cells, 2)
    assert len(hosts["audited"]) == len(hosts["guests"]) == cells
    for audited in hosts["audited"]:
        assert len(set(audited["workers"])) == 2
    assert f"{len(hosts['audited'])} gave the same bytes" in said
