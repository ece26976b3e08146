# SPDX-License-Identifier: GPL-2.0
"""`./setup regress` lets no package start a service, and leaves nothing of that behind."""

import re
import subprocess
from pathlib import Path

import pytest

from firsttouch.files import REPOSITORY


def _run(folder: Path, then: str) -> tuple[int, str]:
    """Run the function of ./setup in `folder`, then a line; return the status and what it said."""
    text = (REPOSITORY / "setup").read_text()
    function = re.search(r"^hold_services\(\) \{.*?^\}$", text, re.M | re.S)
    assert function
    script = f"set -eu\n{function[0].replace('/usr/sbin', str(folder))}\nhold_services\n{then}\n"
    # A shell cannot trap what its parent ignores, such as the hang-up that nohup ignores.
    command = ["env", "--default-signal", "sh", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not done.stderr
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    ("end", "status"),
    [("", 0), ("exit 2", 2), *((f"kill -{s} $$", 128 + n) for s, n in
      (("HUP", 1), ("INT", 2), ("TERM", 15)))],
)  # fmt: skip
def test_services_are_held_until_the_end_however_it_comes(
    tmp_path: Path, end: str, status: int
) -> None:
    policy = tmp_path / "policy-rc.d"
    assert _run(tmp_path, f"{policy} || echo $?\n{end}") == (status, "101\n")
    assert not policy.exists()
