# SPDX-License-Identifier: GPL-2.0
"""Programs that the tests trace."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from firsttouch.building.programs import HOST_RECORDER
from firsttouch.progress import Reporter
from firsttouch.trace.sites import FILE_NAME, Trace, read_trace
from tests.conftest import Firsttouch

FOLDER = Path(__file__).parent
NOBODY = 65534
# What doubles() of trouble.c touches.
PAGES = 256

Compile = Callable[..., Path]


@pytest.fixture(scope="session")
def compile_c(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """Return a function that compiles a C file of this folder with debug information."""

    def build(source: str, *options: str, compiler: str = "gcc") -> Path:
        program = tmp_path_factory.mktemp("program") / Path(source).stem
        done = subprocess.run(
            [compiler, "-g", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", *options,
             "-o", program, FOLDER / source],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return program

    return build


@pytest.fixture(scope="session")
def trouble(compile_c: Compile) -> Path:
    return compile_c("trouble.c")


@pytest.fixture(scope="session")
def recorder() -> Path:
    return HOST_RECORDER.obtain(Reporter())


def run_trace(firsttouch: Firsttouch, *words: str | Path) -> Trace:
    """Run `firsttouch trace`, which must succeed, and return the trace in out/."""
    done = firsttouch("trace", *words)
    assert done.returncode == 0, done.stderr
    return read_trace(firsttouch.directory / "out" / FILE_NAME)


def sentences_of(firsttouch: Firsttouch) -> str:
    """Return the sentences of the trace in out/, as the page has them."""
    document = json.loads((firsttouch.directory / "out" / "trace.json").read_text())
    return " ".join(document["sentences"])


def doubles_of(trace: Trace) -> int:
    """Return the doubles of doubles() in trouble.c."""
    return sum(site.doubles for site in trace.sites if site.read.function.startswith("doubles"))


def make_public(program: Path, folder: Path) -> Path:
    """Return a copy that all users may execute, in a folder that all may write to."""
    folder.chmod(0o777)
    for part in folder.parents:
        if part.owner() == "root" and part not in (Path("/tmp"), Path("/")):
            part.chmod(0o755)
    copy = folder / program.name
    copy.write_bytes(program.read_bytes())
    copy.chmod(0o755)
    return copy


def with_own_mounts(
    firsttouch: Firsttouch, script: str, *, check: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run a script of the shell where it may mount, and what it runs finds the test's store."""
    return subprocess.run(
        ["unshare", "--mount", "sh", "-c", script],
        cwd=firsttouch.directory, env=firsttouch.environment(), capture_output=True, text=True,
        check=check,
    )  # fmt: skip
