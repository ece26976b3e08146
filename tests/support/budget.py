# SPDX-License-Identifier: GPL-2.0
"""`--minutes N`: a run starts no test after N minutes, and says how many are left.

Such a run is not green: it ends with pytest's status for failed tests unless
all tests were run. All workers go by the one deadline of the process that
starts them.
"""

from __future__ import annotations

import time
from typing import Any

import pytest

# What pytest calls a test that was not begun.
NOT_RUN = "not run"
_DEADLINE = "firsttouch_deadline"


class Budget:
    """The hooks of a run with a deadline, in seconds since the epoch."""

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline

    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker of xdist the deadline."""
        node.workerinput[_DEADLINE] = self.deadline

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Begin no test after the deadline."""
        if time.time() >= self.deadline:
            item.user_properties.append((NOT_RUN, True))
            pytest.skip("the time given by --minutes is over")

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Distinguish tests that were not started from those skipped for another reason."""
        if report.skipped and (NOT_RUN, True) in map(tuple, report.user_properties):
            return NOT_RUN, "", NOT_RUN.upper()
        return None

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """A run that left tests out is not green."""
        if session.exitstatus == pytest.ExitCode.OK and _left(session.config):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, config: pytest.Config) -> None:
        """Say how many tests are left."""
        if left := _left(config):
            _terminal(config).write_line(
                f"{left} tests were not run for want of time: the same command goes on, "
                "with the outcomes of all guests that ended kept."
            )


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --minutes."""
    parser.addoption(
        "--minutes",
        type=float,
        metavar="N",
        help="begin no test after N minutes; the same command goes on with the rest",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Set the deadline, or take it from the process that started this worker."""
    minutes = config.getoption("--minutes")
    if minutes is not None:
        given = getattr(config, "workerinput", {}).get(_DEADLINE)
        config.pluginmanager.register(Budget(given or time.time() + 60 * minutes))


def _left(config: pytest.Config) -> int:
    """Return how many tests were not begun; only the process that reports knows."""
    if not config.pluginmanager.has_plugin("terminalreporter"):
        return 0
    return len(_terminal(config).stats.get(NOT_RUN, []))


def _terminal(config: pytest.Config) -> pytest.TerminalReporter:
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    assert isinstance(terminal, pytest.TerminalReporter)
    return terminal
