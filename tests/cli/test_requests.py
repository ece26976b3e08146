# SPDX-License-Identifier: GPL-2.0
"""Bad requests: exit status 2, one sentence that says what to do, no traceback."""

import argparse
import json
import lzma
import os
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from firsttouch.cli.main import main
from firsttouch.cli.options import by_release, release_of
from firsttouch.files import EXPERIMENTS, REPOSITORY
from firsttouch.progress import Reporter
from tests.conftest import Firsttouch
from tests.support import made_results
from tests.support.checkouts import copy_checkout
from tests.support.warm import Finished


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
        "old": json.dumps({**results[0].document(), "schema": 1}) + "\n",
    }
    for name, text in texts.items():
        Path(name).mkdir()
        (Path(name) / "results.jsonl").write_text(text)
    Path("cut.jsonl.xz").write_bytes(lzma.compress(b"{}")[:-8])
    Path("file").touch()
    Path("empty").mkdir()
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


def test_releases_run_in_turn_each_with_its_own_folder() -> None:
    ran = []

    def run(options: argparse.Namespace, _: Reporter) -> int:
        ran.append((release_of(options), options.out))
        return len(ran) % 2

    options = argparse.Namespace(release=["7.3", "6.12", "7.3"], source=None, out=Path("out"))
    assert by_release(run)(options, Reporter()) == 1
    assert ran == [("7.3", Path("out/7.3")), ("6.12", Path("out/6.12"))]


_IMPORTED = """
import sys
from firsttouch.cli.main import main
status = main(sys.argv[1:])
print(*sys.modules, file=sys.stderr)
sys.exit(status)
"""


@pytest.mark.parametrize(
    "line",
    ["--help", "--version", "store list", "doctor --help", "kernel --help"],
)
def test_a_short_command_does_not_import_the_others(line: str, own_cache: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _IMPORTED, *line.split()],
        cwd=REPOSITORY, capture_output=True, text=True, check=True,
    )  # fmt: skip
    modules = done.stderr.split()
    rooms = {".".join(name.split(".")[:2]) for name in modules}
    assert "firsttouch.cli" in rooms
    long = {"analysis", "output", "survey", "trace"}
    assert not rooms & {f"firsttouch.{room}" for room in long}
    # These take most of the time of the commands that need them.
    assert not rooms & {"jinja2", "capstone", "elftools"}


def test_the_laboratory_does_not_import_a_disassembler(own_cache: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _IMPORTED, "lab", "--help"],
        cwd=REPOSITORY, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert not {"capstone", "elftools"} & set(done.stderr.split())


def test_a_series_has_no_author_that_nobody_named(
    firsttouch: Firsttouch, fake_linux: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.setenv(name, "/dev/null")
    _refused(firsttouch("kernel", "series", "--source", fake_linux), "set git's user.name")


def test_a_tree_that_was_built_in(firsttouch: Firsttouch, fake_linux: Path) -> None:
    (fake_linux / ".config").touch()
    _refused(firsttouch("lab", "--source", fake_linux), "make mrproper")


def test_a_tree_without_a_version(firsttouch: Firsttouch, fake_linux: Path) -> None:
    (fake_linux / "Makefile").write_text("all:\n")
    _refused(firsttouch("lab", "--source", fake_linux), "holds no Linux kernel source")


def test_a_tree_to_which_the_hooks_do_not_apply(
    firsttouch: Firsttouch, fake_linux: Path, own_cache: Path
) -> None:
    done = firsttouch("kernel", "series", "--source", fake_linux)
    _refused(done, "hooks of 6.12 do not apply", "it has no ")


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


# -- a change of the data files, in a copy of the checkout


@pytest.fixture
def copied(tmp_path: Path, listing_cache: Path) -> Path:
    """A separate checkout, and a store that contains only the ftbench that is listed."""
    return copy_checkout(tmp_path / "a checkout")


def _in(copied: Path, *arguments: str) -> Finished:
    return subprocess.run(
        [sys.executable, "-m", "firsttouch", *arguments],
        cwd=copied.parent, env={**os.environ, "PYTHONPATH": str(copied)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_a_mistake_in_a_data_file_is_named_before_anything_is_built(
    copied: Path, own_cache: Path
) -> None:
    file = copied / "linux/hooks/6.12/source.toml"
    text = file.read_text()
    assert "objects =" in text
    file.write_text(text.replace("objects =", "object =", 1))
    done = _in(copied, "lab", "--experiment", "populate")
    _refused(done, "6.12/source.toml: objects is missing", "'object'")
    for shelf in ("images", "trees", "packages"):
        assert not (own_cache / shelf).exists()
