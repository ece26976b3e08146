# SPDX-License-Identifier: GPL-2.0
"""Runs on the two nodes of a real Slurm end as runs on this host do, whatever is killed."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from firsttouch.building.configuration import given_configuration
from firsttouch.building.host_tools import QEMU
from firsttouch.building.sources import KernelSource, user_source
from firsttouch.catalog.releases import load_release
from firsttouch.errors import HostError
from firsttouch.lab.plan import Plan, Request, make_plan
from firsttouch.lab.slurm import find_partition
from firsttouch.lab.slurm_jobs import build_kernels
from firsttouch.places import REPOSITORY
from firsttouch.progress import Reporter
from tests.conftest import FAKE_CONFIGURATION, FAKE_LINUX, Firsttouch
from tests.support.contract import real_contract
from tests.support.slurm_cluster import NODES, SlurmCluster, slurm_cluster

pytestmark = pytest.mark.regress


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlurmCluster]:
    with slurm_cluster() as cluster:
        for name in ("PATH", "SLURM_CONF"):
            monkeypatch.setenv(name, cluster.environment[name])
        monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
        yield cluster


@pytest.fixture
def fake_plan(
    cluster: SlurmCluster,
    fake_linux: Path,
    configured_cache: Path,
    reporter: Reporter,
    monkeypatch: pytest.MonkeyPatch,
) -> tuple[Plan, KernelSource]:
    """A plan for a kernel that is built in seconds; its image is none."""
    monkeypatch.setenv("FAKE_IMAGE", str(fake_linux / "Makefile"))
    source = user_source(fake_linux, reporter)
    request = Request(experiments=("populate",), arms=("stock",), size=1 << 22)
    return make_plan(request, source.release.name, real_contract()), source


def test_a_node_builds_the_kernel_of_a_plan(
    fake_plan: tuple[Plan, KernelSource], configured_cache: Path, tmp_path: Path, reporter: Reporter
) -> None:
    partition = find_partition("")
    assert (partition.cpus, partition.memory) == (4, 12000 << 20)
    build_kernels(*fake_plan, partition, tmp_path / "log", reporter)
    (image,) = configured_cache.glob("images/*/Image")
    (log,) = (tmp_path / "log").iterdir()
    assert log.read_text().endswith(f"{image}\n")
    # The store has it now.
    build_kernels(*fake_plan, partition, tmp_path / "again", reporter)
    assert not (tmp_path / "again").exists()


def test_a_build_that_fails_is_not_repeated(
    fake_plan: tuple[Plan, KernelSource],
    tmp_path: Path,
    reporter: Reporter,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FAKE_FAILS", "part3")
    with pytest.raises(HostError, match="Slurm job 1 ended and did nothing") as raised:
        build_kernels(*fake_plan, find_partition("cells"), tmp_path / "log", reporter)
    assert "error: 'vma' undeclared" in "".join(raised.value.detail)


@dataclass(frozen=True)
class Reference:
    """What the same plan gives on this host: `words` of the command, a `store` with its parts."""

    words: tuple[str | Path, ...]
    environment: Mapping[str, str]
    store: Path
    out: Path


@pytest.fixture(scope="module")
def reference(
    images: Callable[[str, bool], Path], tmp_path_factory: pytest.TempPathFactory
) -> Reference:
    """Of a tree that builds in seconds; its image is a real kernel."""
    folder = tmp_path_factory.mktemp("reference")
    source = shutil.copytree(FAKE_LINUX, folder / "linux")
    words = (
        "lab", "--experiment", "populate", "--size", "4M", "--set", "by=ldadd", "--arm", "stock",
        "--source", source,
    )  # fmt: skip
    environment = {"FAKE_IMAGE": str(images("6.12", False)), "XDG_CACHE_HOME": str(folder)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        given_configuration(load_release("6.12"), FAKE_CONFIGURATION, Reporter())
    done = Firsttouch(folder)(*words, **environment)
    assert done.returncode == 0, done.stderr
    return Reference(words, environment, folder / "firsttouch", folder / "out")


@dataclass
class FrontEnd:
    """`lab --on slurm` with a store of its own, which the nodes share, and what it said."""

    firsttouch: Firsttouch
    cluster: SlurmCluster
    reference: Reference
    process: subprocess.Popen[str] | None = None

    @property
    def out(self) -> Path:
        return self.firsttouch.directory / "out"

    @property
    def store(self) -> Path:
        return self.firsttouch.directory / "cache/firsttouch"

    def start(self, *options: str, on: str = "slurm") -> subprocess.Popen[str]:
        if not self.store.exists():
            for shelf in ("programs", "packages"):
                shutil.copytree(self.reference.store / shelf, self.store / shelf)
        environment = {
            **self.reference.environment, **self.cluster.environment,
            "XDG_CACHE_HOME": str(self.store.parent), "PYTHONPATH": str(REPOSITORY),
        }  # fmt: skip
        self.process = self.firsttouch.start(
            *self.reference.words, "--on", on, *options, **environment
        )
        return self.process

    def end(self) -> str:
        """Wait for its end; return what it said."""
        assert self.process
        said = self.process.communicate(timeout=900)[1]
        assert self.process.returncode == 0, said
        return said

    def wait_until(self, reached: Callable[[], bool]) -> None:
        assert self.process
        while not reached():
            assert self.process.poll() is None, self.process.communicate()[1]
            time.sleep(0.02)

    def outcomes(self) -> int:
        """Return how many guests have ended, the guard's aside."""
        return len([*(self.store / "outcomes").glob("*/*.json")]) - 1

    def assert_same(self) -> None:
        """Compare with what this host gives, byte for byte; no claim may be left."""
        for name in ("results.jsonl", "summary.json"):
            assert (self.out / name).read_bytes() == (self.reference.out / name).read_bytes()
        end = time.monotonic() + 30
        while self.cluster.run("squeue", "-h") and time.monotonic() < end:
            time.sleep(0.2)
        assert not self.cluster.run("squeue", "-h")
        assert not [*(self.store / "claims").glob("*/[!.]*")]


@pytest.fixture
def front_end(firsttouch: Firsttouch, cluster: SlurmCluster, reference: Reference) -> FrontEnd:
    return FrontEnd(firsttouch, cluster, reference)


@pytest.mark.kernel
def test_a_plan_on_two_nodes_gives_the_same_bytes_as_here(front_end: FrontEnd) -> None:
    front_end.start("--workers", "2")
    said = front_end.end()
    front_end.assert_same()
    assert "Building on nodes: done, 1 kernel" in said
    assert "Slurm job 2: guests: 2 tasks" in said
    hosts = json.loads((front_end.out / "hosts.json").read_text())["hosts"]
    assert set(hosts) == set(NODES)
    # Another run finds all of it in the store, and needs no job.
    front_end.start()
    assert "Slurm job" not in front_end.end()
    front_end.assert_same()


@pytest.mark.kernel
@pytest.mark.parametrize("phase", ["build", "cells"])
@pytest.mark.parametrize("killed", ["job", "node", "slurmctld", "front end"])
def test_whatever_is_killed_the_results_are_the_same(
    front_end: FrontEnd, killed: str, phase: str
) -> None:
    process, cluster = front_end.start("--workers", "2"), front_end.cluster
    if phase == "build":
        front_end.wait_until(lambda: any(front_end.store.glob("images/*.making/tree/*/mm/part*")))
    else:
        front_end.wait_until(lambda: front_end.outcomes() >= 1)
    match killed:
        case "job":
            words = ("kernel", "build") if phase == "build" else ("firsttouch", "lab")
            os.kill(cluster.processes_of_jobs(*words)[0], signal.SIGKILL)
        case "node":
            (node, *_) = cluster.run("squeue", "-h", "-t", "R", "-o", "%N").split()
            cluster.kill(node)
            time.sleep(5)
            cluster.start(node)
        case "slurmctld":
            cluster.kill("slurmctld")
            time.sleep(12)
            cluster.start("slurmctld")
        case "front end":
            process.kill()
            process.wait()
            front_end.start("--workers", "2")
    said = front_end.end()
    front_end.assert_same()
    if killed in ("front end", "slurmctld", "node"):
        # One array of builds and one of guests.
        assert said.count("tasks, logs in") + said.count("task, logs in") <= 2


@pytest.mark.kernel
def test_ctrl_c_leaves_the_jobs_and_the_same_command_joins_them(front_end: FrontEnd) -> None:
    process = front_end.start("--workers", "2")
    front_end.wait_until(lambda: front_end.outcomes() >= 1)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert "Slurm job 2 goes on: the same command follows it, `scancel 2` ends it." in said
    assert front_end.cluster.run("squeue", "-h", "-j", "2")
    front_end.start("--workers", "2")
    said = front_end.end()
    assert "Slurm job 2: guests: 2 run" in said and "2 tasks" not in said
    front_end.assert_same()


@pytest.mark.kernel
def test_jobs_that_are_preempted_lose_nothing(front_end: FrontEnd) -> None:
    front_end.start("--workers", "2")
    front_end.wait_until(lambda: front_end.outcomes() >= 1)
    front_end.cluster.run(
        "sbatch", "--array=0-3", "--partition=urgent", "--output=/dev/null", "--wrap", "sleep 3"
    )
    said = front_end.end()
    front_end.assert_same()
    assert "wait (BeginTime)" in said and said.count("2 tasks") == 1


@pytest.mark.kernel
def test_a_node_that_can_run_no_guest_takes_none_and_is_named(
    front_end: FrontEnd, tmp_path: Path
) -> None:
    (tmp_path / "broken").touch()
    # QEMU is the same program there, and cannot start.
    libraries = front_end.cluster.run("ldd", shutil.which(QEMU) or QEMU)
    (library,) = re.findall(r"libpixman\S* => (\S+)", libraries)
    front_end.cluster.run_on(NODES[1], "mount", "--bind", str(tmp_path / "broken"), library)
    front_end.start("--workers", "2")
    said = front_end.end()
    front_end.assert_same()
    assert f"A job on {NODES[1]} ended: {QEMU} failed with status 127" in said
    hosts = json.loads((front_end.out / "hosts.json").read_text())["hosts"]
    assert set(hosts) == {NODES[0]}


@pytest.mark.kernel
def test_a_job_at_its_time_limit_is_followed_by_another(front_end: FrontEnd) -> None:
    """The job is stopped until then, because a minute is Slurm's shortest limit."""
    front_end.start("--workers", "1", on="slurm:minute")
    front_end.wait_until(lambda: front_end.outcomes() >= 1)
    (job, *_) = front_end.cluster.processes_of_jobs("firsttouch", "lab")
    os.kill(job, signal.SIGSTOP)
    said = front_end.end()
    front_end.assert_same()
    assert "All tasks of Slurm job 2 have ended, and work is left." in said
    (log,) = (front_end.out / "log/slurm").glob("*-2-0-*.log")
    assert "DUE TO TIME LIMIT" in log.read_text()
