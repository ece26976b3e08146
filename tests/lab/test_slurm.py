# SPDX-License-Identifier: GPL-2.0
"""What Slurm's commands are given and answer; test_slurm_cluster.py runs a real one."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from firsttouch.errors import HostError
from firsttouch.lab import run as run_module
from firsttouch.lab.plan import TASK
from firsttouch.lab.run import run_on_nodes, share_of_task
from firsttouch.progress import Reporter


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of programs, before all others on PATH: sbatch prints `job`."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, script in (
        ("sbatch", 'for word; do echo "$word"; done >"$0.given"; cat "$0.job"; exec sleep 60'),
        ("scancel", 'echo "$@" >"$0.given"'),
    ):
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setattr(run_module, "_POLL_ARRAY", 0.01)
    return folder


def test_an_interrupt_cancels_the_array(
    programs: Path, own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (programs / "sbatch.job").write_text("7;cluster\n")

    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("firsttouch.lab.run.time.sleep", interrupt)
    said = io.StringIO()
    with pytest.raises(KeyboardInterrupt):
        run_on_nodes(
            ["aa", "bb"], ["lab", "--set", "by=swp", "--on", "slurm"],
            tmp_path / "a%b", Reporter(Console(file=said, width=1000)),
        )  # fmt: skip
    words = (programs / "sbatch.given").read_text().splitlines()
    assert {"--wait", "--array=0-1", f"--output={tmp_path}/a%%b/%A-%a.log"} <= {*words}
    assert words[-1].startswith(f"exec env {TASK}={tmp_path}/a%b/guests ")
    assert words[-1].endswith(" lab --set by=swp --on slurm")
    assert "Slurm job 7: 2 tasks" in said.getvalue()
    assert (programs / "scancel.given").read_text() == "--quiet 7\n"


def test_what_sbatch_refuses_is_shown(programs: Path, tmp_path: Path) -> None:
    (programs / "sbatch").write_text("#!/bin/sh\necho 'error: no such account' >&2; exit 1\n")
    with pytest.raises(HostError, match="SBATCH_ACCOUNT") as raised:
        run_on_nodes(["aa"], ["lab"], tmp_path, Reporter())
    assert raised.value.detail == ["error: no such account"]


def test_the_shares_of_all_tasks_are_disjoint_and_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "guests"
    file.write_text("\n".join("abcde"))
    monkeypatch.setenv(TASK, str(file))
    monkeypatch.setenv("SLURM_ARRAY_TASK_COUNT", "2")
    shares = []
    for number in "01":
        monkeypatch.setenv("SLURM_ARRAY_TASK_ID", number)
        shares.append(share_of_task("abcdefg"))
    assert shares == [["a", "c", "e"], ["b", "d"]]
    with pytest.raises(HostError, match="other guests than the front end"):
        share_of_task("a")
