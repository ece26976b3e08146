# SPDX-License-Identifier: GPL-2.0
"""Programs that the tests trace."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent

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
