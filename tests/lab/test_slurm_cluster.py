# SPDX-License-Identifier: GPL-2.0
"""A run on the two nodes of a real Slurm gives the bytes of a run here, with one node killed."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from firsttouch.building.debian import Configuration
from firsttouch.catalog.releases import load_release
from firsttouch.files import REPOSITORY
from firsttouch.progress import Reporter
from tests.conftest import FAKE_CONFIGURATION, FAKE_LINUX, Firsttouch
from tests.support.slurm_cluster import slurm_cluster

pytestmark = [pytest.mark.regress, pytest.mark.kernel]


def test_a_plan_on_two_nodes_gives_the_same_bytes_although_one_is_killed(
    firsttouch: Firsttouch,
    images: Callable[[str, bool], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The kernel's tree builds in seconds; its image is a real kernel."""
    source = shutil.copytree(FAKE_LINUX, tmp_path / "linux")
    stock = str(images("6.12", False))
    words = (
        "lab", "--experiment", "populate", "--size", "4M", "--set", "by=ldadd", "--set",
        "by=store", "--arm", "stock", "--source", source,
    )  # fmt: skip
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "here"))
    Configuration(load_release("6.12")).give(FAKE_CONFIGURATION, Reporter())
    here = firsttouch(*words, "--out", "here", FAKE_IMAGE=stock)
    assert here.returncode == 0, here.stderr
    store = tmp_path / "there/firsttouch"
    for shelf in ("programs", "packages"):
        shutil.copytree(tmp_path / "here/firsttouch" / shelf, store / shelf)
    with slurm_cluster() as cluster:
        environment = {
            **cluster.environment, "XDG_CACHE_HOME": str(tmp_path / "there"),
            "PYTHONPATH": str(REPOSITORY), "FAKE_IMAGE": stock,
        }  # fmt: skip
        there = firsttouch.start(*words, "--out", "there", "--on", "slurm", **environment)
        while not cluster.run("squeue", "-h", "-t", "R", "-o", "%N").split():
            assert there.poll() is None, there.communicate()[1]
            time.sleep(0.05)
        # It takes its guest with it, and does not come back.
        node, *_ = cluster.run("squeue", "-h", "-t", "R", "-o", "%N").split()
        cluster.kill(node)
        said = there.communicate(timeout=600)[1]
        assert there.returncode == 0, said
        assert not cluster.run("squeue", "-h")
    assert "Slurm job 1: 6 tasks" in said
    for name in ("results.jsonl", "summary.json"):
        files = [firsttouch.directory / out / name for out in ("here", "there")]
        assert files[0].read_bytes() == files[1].read_bytes()
