# SPDX-License-Identifier: GPL-2.0
"""A run on the two nodes of a real Slurm gives the bytes of a run here, with one node killed."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from firsttouch.building.source import Configuration
from firsttouch.catalog.kernels import load_release
from firsttouch.files import REPOSITORY
from tests.conftest import FAKE_CONFIGURATION, FAKE_LINUX, Firsttouch

pytestmark = [pytest.mark.regress, pytest.mark.kernel]

NODES = ("ftn1", "ftn2")
_PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch")
_PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"
# Seconds.
_START = 60.0
# After this a job that lost its node starts again; Slurm's default is two minutes.
_REQUEUE = 10
_CONFIGURATION = (REPOSITORY / "tests/data/slurm.conf").read_text()


@dataclass
class SlurmCluster:
    """A real Slurm on this host, of Debian's packages, in a directory of its own.

    Each slurmd is in a namespace of process numbers and has a host name of its own. Whatever
    kills a node's first process kills its jobs with it, as a power failure does. `environment`
    lets Slurm's commands find it.
    """

    directory: Path
    environment: Mapping[str, str]
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, name: str) -> None:
        """Start a daemon: munged, slurmctld or one of NODES."""
        munge = self.directory / "munge"
        commands: dict[str, list[str | Path]] = {
            "munged": [
                "munged", "--foreground", f"--key-file={munge}/key", f"--socket={munge}/socket",
                f"--pid-file={munge}/pid", f"--seed-file={munge}/seed", f"--log-file={munge}/log",
            ],
            "slurmctld": ["slurmctld", "-D"],
            **{
                node: [
                    "unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--uts", "sh",
                    "-c", 'hostname "$0" && exec slurmd -D -N "$0"', node,
                ]
                for node in NODES
            },
        }  # fmt: skip
        with (self.directory / f"{name}.out").open("ab") as printed:
            self.processes[name] = subprocess.Popen(
                commands[name], env=self.environment, cwd=self.directory,
                stdin=subprocess.DEVNULL, stdout=printed, stderr=subprocess.STDOUT,
            )  # fmt: skip

    def kill(self, name: str) -> None:
        """Kill a daemon at once; with a node die its jobs."""
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def run(self, *command: str) -> str:
        """Return what one of Slurm's commands prints."""
        return subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=True, timeout=60
        ).stdout

    def wait_until_ready(self) -> None:
        """Wait until both nodes take jobs; AssertionError with their logs after a minute."""
        end = time.monotonic() + _START
        states: list[str] = []
        while time.monotonic() < end:
            try:
                states = self.run("sinfo", "-h", "-N", "-p", "cells", "-o", "%t").split()
            except subprocess.SubprocessError as error:
                states = [str(error)]
            if len(states) == len(NODES) and {*states} <= {"idle", "mix", "alloc", "comp"}:
                return
            time.sleep(0.2)
        raise AssertionError(f"Slurm did not start: {states}\n{self.logs()}")

    def logs(self) -> str:
        """Return the ends of the daemons' logs."""
        files = sorted(self.directory.glob("*.out"))
        return "\n".join(
            f"== {file.name}\n{file.read_text(errors='replace')[-2000:]}" for file in files
        )


@contextmanager
def slurm_cluster() -> Iterator[SlurmCluster]:
    """Run a Slurm while the context lasts; AssertionError with the name of what is missing."""
    for program in _PROGRAMS:
        assert shutil.which(program, path=_PATH), f"{program} is missing: run `./setup regress`"
    assert os.geteuid() == 0, "the nodes have namespaces of their own: run these tests as root"
    # The path of a socket has at most 107 bytes; pytest's directories may be longer.
    directory = Path(tempfile.mkdtemp(prefix="ft-slurm-"))
    # munged refuses a socket that others cannot reach.
    directory.chmod(0o755)
    with ExitStack() as ending:
        ending.callback(shutil.rmtree, directory, ignore_errors=True)
        for name in ("munge", "state", *(f"spool.{node}" for node in NODES)):
            (directory / name).mkdir(mode=0o755)
        key = directory / "munge/key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        configuration = directory / "slurm.conf"
        configuration.write_text(
            _CONFIGURATION.format(
                host=socket.gethostname(), directory=directory, nodes=NODES,
                ports=_free_ports(1 + len(NODES)), requeue=_REQUEUE,
                node="CPUs=2 RealMemory=12000 State=UNKNOWN",
            )
        )  # fmt: skip
        environment = {**os.environ, "PATH": _PATH, "SLURM_CONF": str(configuration)}
        cluster = SlurmCluster(directory, environment)
        ending.callback(_end, cluster)
        cluster.start("munged")
        for name in ("slurmctld", *NODES):
            cluster.start(name)
        cluster.wait_until_ready()
        yield cluster


def _end(cluster: SlurmCluster) -> None:
    for name in list(cluster.processes):
        cluster.kill(name)


def _free_ports(count: int) -> list[int]:
    with ExitStack() as open_ones:
        sockets = [open_ones.enter_context(socket.socket()) for _ in range(count)]
        for bound in sockets:
            bound.bind(("127.0.0.1", 0))
        return [int(bound.getsockname()[1]) for bound in sockets]


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
    Configuration(load_release("6.12")).give(FAKE_CONFIGURATION)
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
