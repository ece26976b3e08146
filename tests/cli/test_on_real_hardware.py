# SPDX-License-Identifier: GPL-2.0
"""What ./on-real-hardware refuses. tests/linux/test_package.py carries out the rest."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from firsttouch.places import REPOSITORY


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """The script in a checkout of its own, with a command that must not be called."""
    copy = Path(shutil.copy(REPOSITORY / "on-real-hardware", tmp_path))
    command = tmp_path / ".venv/bin/firsttouch"
    command.parent.mkdir(parents=True)
    command.write_text("#!/bin/sh\nexit 1\n")
    command.chmod(0o755)
    return copy


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "say install, compare or undo"),
        (("remove",), "say install, compare or undo"),
        (("compare",), "nothing is installed: run ./on-real-hardware install"),
        (("undo",), "nothing is installed: run ./on-real-hardware install"),
        # The one on x86-64, the other on arm64.
        (("install", "none.deb"), ("not Debian's arm64", "none.deb is no package")),
    ],
)
def test_what_cannot_be_done_is_refused(
    script: Path, words: tuple[str, ...], message: str | tuple[str, ...]
) -> None:
    done = subprocess.run([script, *words], cwd="/", capture_output=True, text=True, check=False)
    assert done.returncode == 2
    possible = (message,) if isinstance(message, str) else message
    assert any(one in done.stderr for one in possible), done.stderr


def test_the_kernel_that_was_installed_must_run(script: Path) -> None:
    kept = script.parent / "out/hardware"
    kept.mkdir(parents=True)
    (kept / "package").write_text("linux-image-6.12.5-first-touch-arm64\n")
    done = subprocess.run([script, "compare"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "choose 6.12.5-first-touch-arm64 in the boot menu" in done.stderr


def test_a_missing_command_is_named(script: Path) -> None:
    shutil.rmtree(script.parent / ".venv")
    done = subprocess.run(
        [script, "undo"], env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "firsttouch is missing: run ./setup" in done.stderr
