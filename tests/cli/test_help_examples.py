# SPDX-License-Identifier: GPL-2.0
"""The examples of `--help`, of README and of other pages are requests that there are."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from firsttouch.cli.main import full_parser, main
from firsttouch.files import REPOSITORY
from tests.conftest import FAKE_LINUX


@pytest.mark.parametrize("words", [["--help"], ["try", "--help"]])
def test_each_example_is_a_request(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    lines = capsys.readouterr().out.partition("examples:\n")[2].splitlines()
    assert len(lines) > 4
    for line in lines:
        command, _, _ = line.partition("firsttouch ")[2].partition("   ")
        assert full_parser().parse_args(shlex.split(command)).run


def test_each_lab_command_can_be_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listing_cache: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    shutil.copytree(FAKE_LINUX, tmp_path / "linux")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("firsttouch.lab.timed.check_kvm", lambda _: None)
    main(["--help"])
    # Of adding.md's commands the entries are examples, those of learned.md are of a past commit.
    pages = [REPOSITORY / "README.md", *(REPOSITORY / "docs").glob("[!h]*/*.md")]
    texts = [page.read_text() for page in pages if page.name != "learned.md"]
    text = "\n".join([text for text in texts if "Written by" not in text])
    text += re.sub("^  ", "", capsys.readouterr().out, flags=re.M)
    commands = set(
        re.findall(r"(?:^|`)firsttouch (lab (?!--list)[^`#\n]*?)(?:`|#|$|   )", text, re.M)
    )
    assert len(commands) > 4
    for command in commands:
        # NAME is a machine of the reader's.
        words = shlex.split(command.replace("NAME", "cortex-a72"))
        assert main([*words, "--dry-run"]) == 0, capsys.readouterr().err
