# SPDX-License-Identifier: GPL-2.0
"""The command at a terminal and in a pipe: quiet ends, correct messages and exit status."""

import argparse
import errno
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from firsttouch.cli.main import exit_status
from firsttouch.errors import BuildError
from firsttouch.files import EXPERIMENTS, REPOSITORY
from tests.support import made_results

COMMAND = [sys.executable, "-m", "firsttouch"]


def _environment(**extra: str) -> dict[str, str]:
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return {**variables, "PYTHONPATH": str(REPOSITORY), **extra}


def _run(
    arguments: Sequence[str | Path], cwd: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        cwd=cwd, env=_environment(**environment), capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sets of results, a and b, which differ."""
    folder = tmp_path_factory.mktemp("results")
    for name in ("a", "b"):
        made_results.write(folder / name, made_results.plan(EXPERIMENTS, ["populate"]))
    return folder


# -- pipes


def _piped_into_nothing(
    arguments: Sequence[str], cwd: Path, stream: str, command: Sequence[str] = COMMAND
) -> tuple[int, str]:
    """Run the command into a pipe without a reader; return its status and its other output."""
    read, write = os.pipe()
    os.close(read)
    with subprocess.Popen(
        [*command, *arguments],
        cwd=cwd,
        env=_environment(XDG_CACHE_HOME=str(cwd / "cache")),
        stdout=write if stream == "stdout" else subprocess.PIPE,
        stderr=write if stream == "stderr" else subprocess.PIPE,
        text=True,
    ) as process:
        os.close(write)
        said = "".join(text or "" for text in process.communicate())
    return process.returncode, said


@pytest.mark.parametrize(
    "line",
    [
        "--help", "--version", "lab --help", "doctor", "store list",
        "report a", "compare a b", "compare a b --json",
    ],
)  # fmt: skip
def test_a_reader_who_has_gone_ends_the_command_in_silence(results: Path, line: str) -> None:
    assert _piped_into_nothing(line.split(), results, "stdout") == (141, "")


def test_an_output_that_is_closed_and_a_terminal_without_columns(results: Path) -> None:
    line = f"{shlex.join(COMMAND)} report a >&- 2>&-"
    subprocess.run(["sh", "-c", line], cwd=results, env=_environment(), check=True)
    columns = _run(["report", "a"], results, COLUMNS="0")
    assert columns.stdout == _run(["report", "a"], results, COLUMNS="100").stdout != ""


def test_an_error_that_nobody_reads_is_no_traceback(tmp_path: Path) -> None:
    assert _piped_into_nothing(["lab", "--wrong"], tmp_path, "stderr") == (141, "")


# -- terminals


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONIOENCODING": "latin-1"},
        {"PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
    ids=lambda environment: "-".join(environment),
)
def test_a_terminal_without_utf8_loses_characters_and_nothing_else(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    # A name that no such terminal can show.
    folder = made_results.write(tmp_path / "größe-→", made_results.plan(EXPERIMENTS, ["populate"]))
    done = subprocess.run(
        [*COMMAND, "report", folder], cwd=tmp_path, env=_environment(**environment),
        capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip().endswith(b"report.html") and b" \n" not in done.stdout
    assert b"?" in done.stdout


@pytest.mark.parametrize(("extra", "colored"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_no_color_is_respected(extra: dict[str, str], colored: bool) -> None:
    script = "from firsttouch.views.terminal import output_console as c; c().print('[red]x[/red]')"
    variables = _environment(TERM="xterm-256color")
    variables.pop("NO_COLOR", None)
    ours, its = os.openpty()
    command = [sys.executable, "-c", script]
    subprocess.run(command, stdout=its, check=True, env={**variables, **extra})
    assert (b"\x1b[31m" in os.read(ours, 1000)) == colored
    os.close(ours)
    os.close(its)


# -- signals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(("module", "line"), [("typing", "doctor"), ("jinja2", "report out")])
def test_a_signal_during_the_imports_is_one_line(
    tmp_path: Path, module: str, line: str, number: signal.Signals
) -> None:
    # A module that replaces the one of its name.
    (tmp_path / f"{module}.py").write_text(f"import os\nos.kill(os.getpid(), {int(number)})\n")
    done = _run(line.split(), tmp_path, PYTHONPATH=f"{tmp_path}:{REPOSITORY}")
    assert (done.returncode, done.stdout) == (128 + number, "")
    assert done.stderr == "firsttouch: interrupted.\n"


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_command_says_so_and_claims_nothing_more(
    tmp_path: Path, number: signal.Signals, status: int
) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    # doctor waits for this program, which interrupts its parent and keeps running.
    script = f"#!/bin/sh\nkill -{int(number)} $(cat {tmp_path}/pid)\nsleep 60\n"
    (tools / "uname").write_text(script)
    (tools / "uname").chmod(0o755)
    script = f"echo $$ >{shlex.quote(str(tmp_path / 'pid'))}; exec {shlex.join(COMMAND)} doctor"
    done = subprocess.run(
        ["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False,
        env=_environment(PATH=f"{tools}:{os.environ['PATH']}"),
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (status, "firsttouch: interrupted.\n")


# -- full disks


def test_a_file_of_others_is_named_and_only_the_store_can_be_elsewhere(
    own_cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder, remedy in ((Path("out"), "copy its folder"), (own_cache, "set XDG_CACHE_HOME")):

        def write(file: Path = folder / f".a.html.{'0' * 32}") -> int:
            raise PermissionError(errno.EACCES, "Permission denied", str(file))

        assert exit_status(write, argparse.Namespace()) == 2
        said = f"{folder}/a.html: Permission denied: change its permissions, or {remedy} to"
        assert said in capsys.readouterr().err


def test_a_tool_that_finds_the_disk_full_has_the_remedy(
    own_cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def build() -> int:
        raise BuildError("it failed", ["as: cannot write: No space left on device"])

    assert exit_status(build, argparse.Namespace()) == 2
    assert f"store prune --keep SIZE` of {own_cache}; XDG_CACHE_HOME" in capsys.readouterr().err


@pytest.mark.parametrize("line", ["--help", "lab --list", "compare a b"])
def test_a_full_standard_output_is_said(results: Path, line: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*COMMAND, *line.split()], stdout=full, stderr=subprocess.PIPE, text=True, check=False,
            env=_environment(), cwd=results,
        )  # fmt: skip
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "No space left on device: free some space" in done.stderr


def test_completion_knows_commands_and_options(tmp_path: Path) -> None:
    tools = Path(sys.executable).parent
    script = subprocess.run(
        [tools / "register-python-argcomplete", "firsttouch"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    ask = """
        COMP_LINE="firsttouch $*"; COMP_POINT=${#COMP_LINE}; COMP_TYPE=9
        COMP_WORDS=(firsttouch "$@"); COMP_CWORD=$#; COMPREPLY=()
        $(complete -p firsttouch | sed 's/.*-F \\([^ ]*\\).*/\\1/') firsttouch
        echo "${COMPREPLY[@]}"
    """
    for words, wanted in (
        (["sur"], "survey"), (["lab", "--mach"], "--machine"), (["kernel", "ser"], "series"),
        (["lab", "--machine", "thu"], "thunderx2"), (["try", "--release", "7"], "7.3"),
        (["lab", "--experiment", "populate", "--set", "by=ldx"], "ldxr"),
    ):  # fmt: skip
        done = subprocess.run(
            ["bash", "-c", f"{script}\n{ask}", "bash", *words],
            capture_output=True, text=True, check=False, cwd=tmp_path,
            env=_environment(PATH=f"{tools}:{os.environ['PATH']}"),
        )  # fmt: skip
        assert done.stdout.split() == [wanted], (words, done.stderr)
