# SPDX-License-Identifier: GPL-2.0
"""Bad requests: exit status 2, one sentence that says what to do, no traceback."""

import argparse
import lzma
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from firsttouch.cli.main import main
from firsttouch.cli.options import by_release, release_of
from firsttouch.files import EXPERIMENTS, REPOSITORY
from firsttouch.lab.plan import TASK
from firsttouch.progress import Reporter
from tests.conftest import Finished, Firsttouch
from tests.support import made_results
from tests.support.surveys import SURVEY


def _refused(done: Finished, *fragments: str) -> None:
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    # One sentence, on the last line; the lines before it are progress.
    *progress, sentence = done.stderr.strip().splitlines()
    assert sentence.startswith("firsttouch: "), done.stderr
    assert not any(line.startswith("firsttouch: ") for line in progress)
    for fragment in fragments:
        assert fragment in sentence


@pytest.fixture
def directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_entries: Path) -> Path:
    """The working directory of the requests of requests.toml: results, and what looks like some."""
    monkeypatch.chdir(tmp_path)
    results = made_results.plan(EXPERIMENTS, ["populate"], page="4k")
    made_results.write(Path("a"), results)
    made_results.write(Path("b"), made_results.plan(EXPERIMENTS, ["read-fault"]))
    texts = {
        "none": "no results\n",
        "old": results[0].result().line().replace('"schema": 2', '"schema": 1'),
    }
    for name, text in texts.items():
        Path(name).mkdir()
        (Path(name) / "results.jsonl").write_text(text)
    Path("cut.jsonl.xz").write_bytes(lzma.compress(b"{}")[:-8])
    Path("newer.json").write_text('{"schema": 9}')
    Path("file").touch()
    Path("empty").mkdir()
    Path("surveyed").mkdir()
    shutil.copy(SURVEY, "surveyed/results.jsonl")
    Path("traced").mkdir()
    Path("traced/trace.data").write_text("no recording")
    return tmp_path


@pytest.mark.parametrize(
    "refused",
    tomllib.loads((REPOSITORY / "tests/data/requests.toml").read_text())["request"],
    ids=lambda refused: refused["argv"],
)
def test_a_bad_request_is_refused_in_one_sentence(
    directories: Path, capsys: pytest.CaptureFixture[str], refused: dict[str, str]
) -> None:
    files = set(directories.rglob("*"))
    assert main(shlex.split(refused["argv"])) == 2
    assert capsys.readouterr() == ("", f"firsttouch: {refused['says']}\n")
    assert set(directories.rglob("*")) == files


@pytest.mark.parametrize(("line", "usage"), [("", ""), ("help", ""), ("help store", " store")])
def test_the_overview_and_help(line: str, usage: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(shlex.split(line)) == 0
    assert capsys.readouterr().out.startswith(f"usage: firsttouch{usage} [-h]")


@pytest.mark.parametrize(
    ("task", "runs"),
    [
        (False, [("7.3", Path("out/7.3")), ("6.12", Path("out/6.12"))]),
        # A task of Slurm's runs guests of the release that the front end adds.
        (True, [("7.3", Path("out"))]),
    ],
)
def test_releases_run_in_turn_each_with_its_own_folder(
    monkeypatch: pytest.MonkeyPatch, task: bool, runs: list[tuple[str, Path]]
) -> None:
    if task:
        monkeypatch.setenv(TASK, "file")
    ran = []

    def run(options: argparse.Namespace, _: Reporter) -> int:
        ran.append((release_of(options), options.out))
        return len(ran) % 2

    options = argparse.Namespace(release=["7.3", "6.12", "7.3"], source=None, out=Path("out"))
    assert by_release(run)(options, Reporter()) == 1
    assert ran == runs


_IMPORTED = """
import sys
from firsttouch.cli.main import main
status = main(sys.argv[1:])
print(*sys.modules, file=sys.stderr)
sys.exit(status)
"""


# These take most of the time of the commands that need them.
_DISASSEMBLER = {"capstone", "elftools"}
_LONG = {"firsttouch.analysis", "firsttouch.survey", "firsttouch.trace", "firsttouch.views",
         "jinja2", *_DISASSEMBLER}  # fmt: skip


@pytest.mark.parametrize(
    ("line", "others"),
    [
        *((line, _LONG) for line in ("--help", "--version", "store list", "kernel --help")),
        ("doctor --help", _LONG), ("lab --help", _DISASSEMBLER),
    ],
)  # fmt: skip
def test_a_command_does_not_import_what_only_others_need(
    line: str, others: set[str], own_cache: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _IMPORTED, *line.split()],
        cwd=REPOSITORY, capture_output=True, text=True, check=True,
    )  # fmt: skip
    modules = done.stderr.split()
    rooms = {".".join(name.split(".")[:2]) for name in modules}
    assert "firsttouch.cli" in rooms and not rooms & others


def test_a_series_has_no_author_that_nobody_named(
    firsttouch: Firsttouch, fake_linux: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.setenv(name, "/dev/null")
    _refused(firsttouch("kernel", "series", "--source", fake_linux), "set git's user.name")


def test_a_tree_built_in_or_without_a_version(firsttouch: Firsttouch, fake_linux: Path) -> None:
    (fake_linux / ".config").touch()
    _refused(firsttouch("lab", "--source", fake_linux), "make mrproper")
    (fake_linux / "Makefile").write_text("all:\n")
    _refused(firsttouch("lab", "--source", fake_linux), "holds no Linux kernel source")


def test_a_tree_to_which_the_hooks_do_not_apply(
    firsttouch: Firsttouch, fake_linux: Path, own_cache: Path
) -> None:
    done = firsttouch("kernel", "series", "--source", fake_linux)
    _refused(done, "hooks of 6.12 do not apply", "No such file or directory")


@pytest.mark.long
@pytest.mark.parametrize(
    ("tool", "command"),
    [
        ("qemu-system-aarch64", "lab --arm stock --experiment read-fault"),
        ("aarch64-linux-gnu-gcc", "lab --arm stock --experiment read-fault"),
        ("dh_builddeb", "kernel package"),
    ],
)
def test_a_missing_tool_is_named(
    firsttouch: Firsttouch, fake_linux: Path, configured_cache: Path, tmp_path: Path,
    tool: str, command: str,
) -> None:  # fmt: skip
    tools = tmp_path / "bin"
    tools.mkdir()
    for folder in ("/usr/bin", "/bin", "/usr/sbin", "/sbin"):
        for program in Path(folder).iterdir():
            if program.name != tool and not (tools / program.name).exists():
                (tools / program.name).symlink_to(program)
    image = tmp_path / "Image"
    image.write_bytes(b"not booted: the tool is missed before")
    done = firsttouch(
        *command.split(), "--source", fake_linux, PATH=str(tools), FAKE_IMAGE=str(image)
    )
    _refused(done, f"{tool} is missing", "firsttouch doctor")


def test_a_build_that_fails_shows_the_compilers_error(
    firsttouch: Firsttouch, fake_linux: Path, configured_cache: Path
) -> None:
    done = firsttouch(
        "kernel", "build", "--arm", "stock", "--source", fake_linux, FAKE_FAILS="part7"
    )
    assert done.returncode == 1
    assert "mm/part7.c:7:3: error: 'vma' undeclared" in done.stderr
    assert "the whole log is" in done.stderr
    assert "Traceback" not in done.stderr
