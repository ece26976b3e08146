# SPDX-License-Identifier: GPL-2.0
"""The examples of `firsttouch --help`, of README and of other pages do what they say."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from firsttouch.building.programs import build_ftbench, build_recorder
from firsttouch.cli.main import main
from firsttouch.files import EXPERIMENTS, REPOSITORY
from firsttouch.lab.results import write_results
from firsttouch.progress import Reporter
from tests.conftest import FAKE_LINUX, TRIED, Firsttouch
from tests.support import made_results
from tests.support.results import make_profiled

# Commands that build a kernel, boot a guest or measure this host for half a minute
# are only parsed here; other tests run them.
_LONG = ("survey", "guest", "kernel", "profile")


def _examples(text: str) -> list[list[str]]:
    lines = text.partition("examples:\n")[2].partition("\n\n")[0].splitlines()
    commands = [re.split(r"\s{2,}(?=\S)", line.strip())[0] for line in lines if line.strip()]
    return [shlex.split(command) for command in commands]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with all that the examples name."""
    home = tmp_path / "home"
    shutil.copytree(FAKE_LINUX, home / "linux")
    shutil.copy(TRIED / "0001-mm-synchronize-each-first-touch.patch", home / "my.patch")
    results = made_results.plan(EXPERIMENTS, ["populate"], page="4k")
    made_results.write(tmp_path / "out", results)
    made_results.write(home / "colleague/out", results)
    (tmp_path / "out/profile").mkdir()
    write_results(tmp_path / "out/profile", [make_profiled([100, 200])])
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(tmp_path)
    return home


@pytest.fixture(scope="session")
def programs(reporter: Reporter) -> list[Path]:
    """What a trace runs on this host, its recorder and its survey, in the store."""
    return [build(reporter, native=True).parent for build in (build_recorder, build_ftbench)]


@pytest.mark.long
def test_each_example_does_what_it_says(
    firsttouch: Firsttouch,
    home: Path,
    programs: list[Path],
    listing_cache: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for entry in programs:
        shutil.copytree(entry, listing_cache / "programs" / entry.name, dirs_exist_ok=True)
    examples = _examples(firsttouch("--help").stdout)
    assert len(examples) > 10
    for name, *words in examples:
        assert name == "firsttouch"
        arguments = [word.replace("~", str(home), 1) for word in words]
        if arguments[0] in _LONG:
            # With --help after the options, unknown options are still errors.
            assert main([*arguments, "--help"]) == 0, capsys.readouterr().err
            assert "usage:" in capsys.readouterr().out
            continue
        if (
            arguments[0] in ("lab", "try")
            and "--list" not in arguments
            and "--dry-run" not in arguments
        ):
            arguments.append("--dry-run")
        assert main(arguments) == 0, capsys.readouterr().err
        printed = capsys.readouterr()
        # What a traced command prints on standard output is its own.
        assert printed.err if arguments[0] == "trace" else printed.out, arguments


def test_the_example_of_two_arms_is_about_cells_that_there_are(
    firsttouch: Firsttouch, home: Path, listing_cache: Path
) -> None:
    (words,) = (words for words in _examples(firsttouch("--help").stdout) if "by=ldadd" in words)
    done = firsttouch(*words[1:], "--dry-run")
    assert "2 cells in 2 guests" in done.stdout


def test_each_lab_command_of_the_pages_can_be_planned(
    home: Path, listing_cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Of adding.md's commands the entries are examples, those of learned.md are of a past commit.
    pages = [REPOSITORY / "README.md", *(REPOSITORY / "docs").glob("[!h]*/*.md")]
    texts = [page.read_text() for page in pages if page.name != "learned.md"]
    text = "\n".join(text for text in texts if "Written by" not in text)
    commands = set(re.findall(r"(?:^|`)firsttouch (lab (?!--list)[^`#\n]*)", text, re.M))
    assert len(commands) > 3
    for command in commands:
        assert main([*shlex.split(command), "--dry-run"]) == 0, capsys.readouterr().err
