# SPDX-License-Identifier: GPL-2.0
"""The binary's hash names the cells it measured: the same source must give the same bytes."""

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from firsttouch.building.host_tools import cross_compile
from firsttouch.building.programs import BENCH, ORDERS
from firsttouch.files import REPOSITORY
from firsttouch.processes import output
from firsttouch.progress import Reporter

pytestmark = pytest.mark.long


def test_same_bytes_whoever_builds_it_where_and_when(arm64_ftbench: Path, tmp_path: Path) -> None:
    copy = tmp_path / "somewhere else's/bench"
    shutil.copytree(REPOSITORY / "bench", copy)
    for path in copy.rglob("*"):
        path.chmod(0o700)
        os.utime(path, (0, 0))
    # SOURCE_DATE_EPOCH is what __DATE__ and __TIME__ would have.
    environment = {"LC_ALL": "C.UTF-8", "TZ": "Asia/Kathmandu", "SOURCE_DATE_EPOCH": "1000000000",
                   "CFLAGS": "-O0", "HOME": str(tmp_path)}  # fmt: skip
    objects = tmp_path / "objects"
    subprocess.run(
        ["sh", "-c", 'umask 077; exec "$@"', "sh", "make", "-s", "-C", copy,
         f"CROSS_COMPILE={cross_compile()}", f"OUTPUT={objects}"],
        env={**os.environ, **environment},
        check=True,
    )  # fmt: skip
    assert (objects / "ftbench").read_bytes() == arm64_ftbench.read_bytes()


def test_another_order_is_the_same_program_in_another_place(
    arm64_ftbench: Path, tmp_path: Path
) -> None:
    """Layouts of the laboratory have it; the first order is that of a build without one."""
    first = BENCH.obtain(Reporter())
    assert first.read_bytes() == arm64_ftbench.read_bytes()
    built = [replace(BENCH, order=order).obtain(Reporter()) for order in range(ORDERS)]
    places = list(map(_functions, built))
    assert len({tuple(sorted(functions)) for functions in places}) == 1
    assert len({functions["region_begin"] for functions in places}) == ORDERS


def _functions(program: Path) -> dict[str, str]:
    """Return the address of each function of ftbench's own, by name."""
    lines = (line.split() for line in output(["nm", program]).splitlines())
    return {words[2]: words[0] for words in lines if len(words) == 3 and words[1] == "T"}
