# SPDX-License-Identifier: GPL-2.0
"""`firsttouch guest` without a terminal; tests/cli/test_guest.py has one."""

from __future__ import annotations

import pytest

from firsttouch.cli.main import main


def test_a_shell_needs_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["guest"]) == 2
    assert "standard input is no terminal: run `firsttouch guest` in one" in capsys.readouterr().err
