# SPDX-License-Identifier: GPL-2.0
"""Fixtures of all tests: the lab as a user runs it, the fake kernel tree, the real kernels."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from firsttouch.images import KernelImage
from firsttouch.progress import Reporter
from firsttouch.sources import KernelSource, debian_source, find_release

REPOSITORY = Path(__file__).resolve().parent.parent
FAKE_LINUX = REPOSITORY / "tests/firsttouch/fakelinux"

Finished = subprocess.CompletedProcess[str]


def pytest_report_header() -> list[str]:
    return [
        "layers: fast (no kernel needed), long (none either, but half a minute), "
        "kernel (real kernels built and booted in QEMU)"
    ]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which layers ran, so that a short run is not taken for a whole one."""
    ran: dict[str, int] = {"fast": 0, "long": 0, "kernel": 0}
    for report in terminalreporter.getreports("passed"):
        if report.when == "call":
            layer = next((name for name in ("kernel", "long") if name in report.keywords), "fast")
            ran[layer] += 1
    terminalreporter.write_line(
        "passed by layer: " + ", ".join(f"{layer} {count}" for layer, count in ran.items())
    )


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
    return lambda release: debian_source(find_release(release), reporter)


@pytest.fixture(scope="session")
def images(
    sources: Callable[[str], KernelSource], reporter: Reporter
) -> Callable[[str, bool], Path]:
    """Real kernels: built on first use, from the cache after that."""
    return lambda release, changed: (
        KernelImage(sources(release), changed).obtain(reporter) / "Image"
    )
