# SPDX-License-Identifier: GPL-2.0
"""`firsttouch lab` ends in the background, and without a terminal, as in the foreground."""

import os
import shlex
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.conftest import Firsttouch

pytestmark = pytest.mark.kernel

# Lines of an interactive shell at a terminal, whose jobs have process groups of their own.
_LINES = {
    "foreground": "{}",
    "background": "{} & wait $!",
    "a session of its own": "setsid --wait {}",
    "input closed": "{} <&- & wait $!",
    "cron": "setsid --wait env -i HOME=$HOME PATH=/usr/bin:/bin {} </dev/null >cron.log 2>&1",
}


@pytest.mark.parametrize("how", _LINES)
def test_a_run_ends_wherever_it_is_started(
    firsttouch: Firsttouch, own_outcomes: Callable[[str], Mapping[str, str]], how: str
) -> None:
    words = firsttouch.command(
        "lab", "--experiment", "populate", "--set", "by=store", "--set", "page=4k", "--size", "4M",
        "--arm", "stock", "--out", "out",
    )  # fmt: skip
    store = own_outcomes("store")
    command = shlex.join(["env", *(f"{name}={value}" for name, value in store.items()), *words])
    line = _LINES[how].format(command)
    done = subprocess.run(
        ["script", "--quiet", "--return", "--command", shlex.join(["bash", "-ic", line]),
         "/dev/null"],
        cwd=firsttouch.directory, env={**os.environ, "HISTFILE": ""}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    log = firsttouch.directory / "cron.log"
    said = done.stdout + (log.read_text() if log.exists() else "")
    assert done.returncode == 0, said
    assert "Measuring: done, 1 guest" in said
    assert Path(firsttouch.directory, "out/report.html").stat().st_size
