# SPDX-License-Identifier: GPL-2.0
"""Builds of the PMU for its tests: the model alone, the plugin, and guests that need no kernel."""

import json
import subprocess
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from firsttouch.files import REPOSITORY

PMU = REPOSITORY / "pmu"
HERE = REPOSITORY / "tests/pmu"
GUESTS = HERE / "guests"
QEMU = "qemu-system-aarch64"
ICOUNT = ("-icount", "shift=0,sleep=off")
CACHES = ("l1i=32K:4:64:lru", "l1d=32K:4:64:lru", "l2=256K:8:64:lru")
DATA = tomllib.loads((REPOSITORY / "tests/data/pmu-counts.toml").read_text())

Finished = subprocess.CompletedProcess[str]


def run(*command: str | Path, **options: Any) -> Finished:
    return subprocess.run(
        [str(word) for word in command], text=True, capture_output=True, check=False, **options
    )


def must_run(*command: str | Path, **options: Any) -> str:
    done = run(*command, **options)
    assert done.returncode == 0, f"{command} failed:\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def build_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return a function that compiles a driver with the PMU's model, without QEMU."""
    folder = tmp_path_factory.mktemp("model")

    def build(name: str, *sources: Path, flags: tuple[str, ...] = ()) -> Path:
        program = folder / name
        warnings = ("-Wall", "-Wextra", "-Werror")
        must_run("gcc", "-O2", "-g", *warnings, f"-I{PMU}", *flags, "-o", program, *sources)
        return program

    return build


@pytest.fixture(scope="session")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the plugin, built for the QEMU that is installed."""
    output = tmp_path_factory.mktemp("pmu")
    must_run("make", "-s", "-C", PMU, f"OUTPUT={output}")
    return output / "libftpmu.so"


@dataclass(frozen=True)
class Ran:
    """How a guest ended, and what the PMU wrote, if it did."""

    finished: Finished
    out: Path

    @property
    def counts(self) -> dict[str, Any]:
        assert self.finished.returncode == 0, self.finished.stderr
        counts = json.loads(self.out.read_text())
        assert isinstance(counts, dict)
        return counts

    def refused(self, words: str) -> None:
        """Assert that it failed with these words, and that nothing passes for a result."""
        assert self.finished.returncode != 0
        assert words in self.finished.stderr
        assert not self.out.exists()


@pytest.fixture(scope="session")
def build_guest(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return a function that links an assembler file with pmu/guest/start.S."""
    folder = tmp_path_factory.mktemp("guests")

    def build(source: Path, *flags: str) -> Path:
        program = folder / f"{source.stem}{''.join(flags)}.elf"
        must_run(
            "make", "-s", "-C", PMU, f"guest={source}", f"GUEST_FLAGS={' '.join(flags)}", program
        )
        return program

    return build


@pytest.fixture
def run_guest(plugin: Path, tmp_path: Path) -> Callable[..., Ran]:
    """Return a function that runs a guest program under the plugin."""

    def start(
        program: Path,
        *options: str,
        qemu: tuple[str, ...] = (),
        out: Path | None = None,
        board: str = "virt,gic-version=3",
        file: Path = plugin,
    ) -> Ran:
        out = out or tmp_path / "counts.json"
        words = ",".join([f"file={file}", f"out={out}", *options])
        command = ["timeout", "60", QEMU, "-M", board, "-cpu", "neoverse-n1", "-m", "512M"]
        command += ["-nographic", "-nodefaults", "-kernel", str(program), "-plugin", words]
        return Ran(run(*command, *qemu), out)

    return start
