# SPDX-License-Identifier: GPL-2.0
"""A request that cannot be carried out: exit status 2 and one sentence that says what to do."""

import os
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from firsttouch.files import REPOSITORY
from tests.bench.conftest import Ftbench

PAGE = os.sysconf("SC_PAGESIZE")
CPUS = len(os.sched_getaffinity(0))

_REQUESTS = tomllib.loads((REPOSITORY / "tests/data/ftbench-requests.toml").read_text())["request"]


def _resolved(text: str) -> str:
    """`text` with pages and CPUs of this host: {8p}, {cpus}, {more cpus}."""
    text = text.replace("{cpus}", str(CPUS)).replace("{more cpus}", str(CPUS + 1))
    return re.sub(r"\{(\d+)p(\+\d+)?\}", lambda n: str(int(n[1]) * PAGE + int(n[2] or 0)), text)


@pytest.mark.parametrize("request_", _REQUESTS, ids=lambda request: " ".join(request["argv"]))
def test_refused(ftbench: Ftbench, request_: dict[str, Any]) -> None:
    done = ftbench(*map(_resolved, request_["argv"]))
    assert (done.returncode, done.stdout) == (2, "")
    assert _resolved(request_["says"]) in done.stderr
    assert done.stderr.startswith("ftbench: ") and done.stderr.count("\n") == 1


def test_file_of_others_is_left_alone(ftbench: Ftbench, tmp_path: Path) -> None:
    path = tmp_path / "precious"
    path.write_bytes(b"precious" * 8192)
    done = ftbench("file-read-fault", "--size", str(4 * PAGE), "--file", str(path))
    assert done.returncode == 2
    assert "was not written by ftbench" in done.stderr
    assert path.read_bytes() == b"precious" * 8192
