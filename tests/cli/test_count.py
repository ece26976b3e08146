# SPDX-License-Identifier: GPL-2.0
"""What a program that `count` runs gets as its standard input."""

import subprocess
import sys
from pathlib import Path

import pytest

_READS = """
import argparse
from firsttouch.cli.count import count_options, programs_of
from firsttouch.progress import Reporter
parser = argparse.ArgumentParser()
count_options(parser)
(program,) = programs_of(parser.parse_args(["--", "cat"]), Reporter())
print(program.input and program.input.read_text(), end="")
"""


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ("printf 'a\\nb\\n' | %s", "a\nb\n"),
        ("%s <text", "of a file\n"),
        ("%s <<END\nhere\nEND", "here\n"),
        ("%s </dev/null", "None"),
        ("%s <&-", "None"),
    ],
)
def test_a_file_or_a_pipe_is_read(tmp_path: Path, line: str, read: str) -> None:
    (tmp_path / "text").write_text("of a file\n")
    (tmp_path / "reads.py").write_text(_READS)
    words = ["sh", "-c", line % f"{sys.executable} reads.py"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == (read, "")


def test_a_pipe_that_is_silent_is_named() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _READS],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stderr
        assert process.stderr.readline().startswith("Reading standard input, a pipe, to its end")
        assert process.communicate("late\n")[0] == "late\n"
