# SPDX-License-Identifier: GPL-2.0
"""Fixtures of all tests: the lab as a user runs it, the fake kernel tree, the real kernels."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from firsttouch.build.images import KernelImage
from firsttouch.progress import Reporter
from firsttouch.build.sources import KernelSource, debian_source
from firsttouch.catalog.releases import load_release

REPOSITORY = Path(__file__).resolve().parent.parent
FAKE_LINUX = REPOSITORY / "tests/build/fakelinux"

Finished = subprocess.CompletedProcess[str]


LAYERS = ("regress", "kernel", "long")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--resume",
        type=Path,
        metavar="DIR",
        help="keep in DIR what the guests of the kernel's tests did, and go on from what is there",
    )


def pytest_report_header() -> list[str]:
    return [
        "layers: fast (no kernel needed), long (none either, but half a minute), "
        "kernel (real kernels built and booted in QEMU), regress (in more configurations)"
    ]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which layers ran, so that a short run is not taken for a whole one; print the matrix."""
    ran: dict[str, int] = {"fast": 0, "long": 0, "kernel": 0, "regress": 0}
    for report in terminalreporter.getreports("passed"):
        if report.when == "call":
            layer = next((name for name in LAYERS if name in report.keywords), "fast")
            ran[layer] += 1
    terminalreporter.write_line(
        "passed by layer: " + ", ".join(f"{layer} {count}" for layer, count in ran.items())
    )
    reports = [
        report
        for outcome in ("passed", "failed")
        for report in terminalreporter.getreports(outcome)
        if report.when == "call"
    ]
    left_out = {
        name: reason
        for report in reports
        for key, names in report.user_properties
        if key == "left_out" and isinstance(names, list)
        for name, reason in names
    }
    for line in [*_matrix(reports), *(f"left out: {n}: {why}" for n, why in left_out.items())]:
        terminalreporter.write_line(line)


def _matrix(reports: list[pytest.TestReport]) -> list[str]:
    """Return the outcome of the kernel's tests by configuration, as a table in Markdown."""
    rows: dict[tuple[str, str, str], Counter[str]] = {}
    for report in reports:
        properties: dict[str, Any] = dict(report.user_properties)
        if "matrix" in properties:
            release, kernel, tests = properties["matrix"]
            row = rows.setdefault((release, kernel, tests), Counter())
            row[report.outcome] += 1
            row.update(properties.get("cases", {}))
    if not rows:
        return []
    kinds = ("passed", "skipped", "failed on both", "failed")
    head = ("release", "kernel", "tests", "guests", *kinds)
    lines = [" | ".join(head), " | ".join("---" for _ in head)]
    for (release, kernel, tests), row in sorted(rows.items()):
        guests = f"{row['passed']} passed" + (f", {row['failed']} FAILED" if row["failed"] else "")
        counts = (f"{row[f'case {kind}']:,}" for kind in kinds)
        lines.append(" | ".join((release, kernel, tests, guests, *counts)))
    return [f"| {line} |" for line in lines]


@dataclass(frozen=True)
class Firsttouch:
    """The command line, run as a user runs it."""

    directory: Path

    def command(self, *arguments: str | Path) -> list[str]:
        return [sys.executable, "-m", "firsttouch", *map(str, arguments)]

    def environment(self, **extra: str) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(REPOSITORY), **extra}

    def __call__(self, *arguments: str | Path, **environment: str) -> Finished:
        return subprocess.run(
            self.command(*arguments),
            cwd=self.directory,
            env=self.environment(**environment),
            capture_output=True,
            text=True,
            check=False,
            timeout=1800,
        )

    def start(self, *arguments: str | Path, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(*arguments),
            cwd=self.directory,
            env=self.environment(**environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


@pytest.fixture
def firsttouch(tmp_path: Path) -> Firsttouch:
    return Firsttouch(tmp_path)


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache for this test alone."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "firsttouch"


@pytest.fixture
def fake_linux(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FAKE_LINUX, tmp_path / "linux"))


@pytest.fixture(scope="session")
def reporter() -> Iterator[Reporter]:
    yield Reporter()


@pytest.fixture(scope="session")
def sources(reporter: Reporter) -> Callable[[str], KernelSource]:
    return lambda release: debian_source(load_release(release), reporter)


@pytest.fixture(scope="session")
def images(
    sources: Callable[[str], KernelSource], reporter: Reporter
) -> Callable[[str, bool], Path]:
    """Real kernels: built on first use, from the cache after that."""
    return lambda release, changed: (
        KernelImage(sources(release), changed).obtain(reporter) / "Image"
    )
