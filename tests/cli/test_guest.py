# SPDX-License-Identifier: GPL-2.0
"""A guest by hand: its QEMU command pasted into a shell, and a shell in it."""

import contextlib
import os
import pty
import re
import select
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import Firsttouch

pytestmark = pytest.mark.kernel

# Seconds without output after which a guest counts as hung.
_PATIENCE = 60
_PROMPT = rb"6\.12 stock:~# "
_CELL = ("--experiment", "populate", "--set", "by=ldadd", "--set", "page=4k", "--size", "4M")


@pytest.fixture
def terminal(
    firsttouch: Firsttouch, tmp_path: Path
) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """Our end of a terminal on which a guest has a shell, and the command that runs it."""
    ours, theirs = pty.openpty()
    guest = subprocess.Popen(
        firsttouch.command("guest", "--arm", "stock"),
        cwd=tmp_path, env=firsttouch.environment(TERM="xterm"),
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    try:
        _until(ours, _PROMPT)
        yield ours, guest
    finally:
        with contextlib.suppress(ProcessLookupError):
            # QEMU is in the group of the command.
            os.killpg(guest.pid, signal.SIGKILL)
        guest.wait()
        os.close(ours)


def test_a_terminal_gets_a_shell_that_ends_with_its_exit(
    terminal: tuple[int, subprocess.Popen[bytes]],
) -> None:
    ours, guest = terminal
    os.write(ours, b"echo $((6 * 7)); tty\r")
    _until(ours, rb"\n42\r+\n/dev/ttyAMA0\r+\n.*# ")
    os.write(ours, b"exit\r")
    assert guest.wait(_PATIENCE) == 0


def test_control_a_x_ends_the_guest(terminal: tuple[int, subprocess.Popen[bytes]]) -> None:
    ours, guest = terminal
    os.write(ours, b"\x01x")
    assert guest.wait(_PATIENCE) == 0


def test_a_command_gives_its_status_and_the_files_that_it_made(
    firsttouch: Firsttouch, tmp_path: Path
) -> None:
    (tmp_path / "shared/below").mkdir(parents=True)
    (tmp_path / "shared/given").write_text("given\n")
    script = "cat /share/given; nproc; echo made > /share/below/made; exit 3"
    words = ("guest", "--arm", "stock", "--cpus", "2", "--memory", "1G", "--share", "shared")
    done = firsttouch(*words, "--exec", script)
    assert (done.returncode, done.stdout) == (3, "given\n2\n"), done.stderr
    assert (tmp_path / "shared/below/made").read_text() == "made\n"
    assert (tmp_path / "shared/given").stat().st_mtime > 1_000_000


@pytest.mark.parametrize("words", [(), ("--arm", "on")])
def test_a_foreign_image_boots_with_no_words_unless_an_arm_is_given(
    firsttouch: Firsttouch, images: Callable[[str, bool], Path], words: tuple[str, ...]
) -> None:
    image = images("6.12", True)
    done = firsttouch("guest", "--kernel", image, *words, "--exec", "cat /proc/cmdline")
    assert done.returncode == 0, done.stderr
    assert ("write_intent" in done.stdout) == bool(words)


def test_a_guest_that_ends_before_its_command_gives_no_status(firsttouch: Firsttouch) -> None:
    done = firsttouch("guest", "--arm", "stock", "--exec", "echo c > /proc/sysrq-trigger; true")
    assert done.returncode == 1
    assert done.stderr.endswith("The guest ended before the command: see its messages above.\n")


def _until(terminal: int, pattern: bytes) -> None:
    """Read the terminal until `pattern` appears; fail if it closes or is silent."""
    seen = b""
    while not re.search(pattern, seen, re.S):
        assert select.select([terminal], [], [], _PATIENCE)[0], seen
        seen += os.read(terminal, 4096)
