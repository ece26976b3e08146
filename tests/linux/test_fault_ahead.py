# SPDX-License-Identifier: GPL-2.0
"""The KUnit tests of streams (fault-ahead) on this host, and mistakes that they must find."""

import re
import subprocess
from pathlib import Path

import pytest

from firsttouch.files import LINUX
from tests.linux.conftest import HERE

_HEADER = LINUX / "mm/fault_ahead.h"
_TESTS = LINUX / "mm/fault_ahead_kunit.c"


def _failed(tmp_path: Path, header: str) -> set[str]:
    """Return which KUnit tests fail with `header` for mm/fault_ahead.h."""
    tests = _TESTS.read_text()
    program = [
        '#include "kunit_on_host.h"',
        re.sub(r"^#include.*$", "", header, flags=re.M),
        tests[tests.index("#define PAGES") : tests.index("static struct kunit_suite")],
        '#include "kunit_on_host.c"\n',
    ]
    (tmp_path / "streams.c").write_text("\n".join(program))
    flags = ("-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-sign-compare", f"-I{HERE}")
    subprocess.run(["cc", *flags, "-o", tmp_path / "streams", tmp_path / "streams.c"], check=True)
    lines = subprocess.run(
        ["timeout", "10", tmp_path / "streams"], check=True, stdout=subprocess.PIPE, text=True
    )
    outcomes = [line.split() for line in lines.stdout.splitlines()]
    assert len(outcomes) == tests.count("KUNIT_CASE(")
    return {name for outcome, name in outcomes if outcome == "failed"}


def test_streams_pass_their_kunit_tests(tmp_path: Path) -> None:
    assert not _failed(tmp_path, _HEADER.read_text())


@pytest.mark.parametrize(
    ("right", "wrong", "found_by"),
    [
        ("< 3 * PAGE_SIZE", "< 2 * PAGE_SIZE", "long_streams"),
        ("stream - addr <", "stream - addr - PAGE_SIZE <", "long_streams"),
        ("(addr >> PAGE_SHIFT & 1)", "(addr & 1)", "three_streams_at_once"),
        ("1 + (addr >> PAGE_SHIFT & 1)", "addr >> PAGE_SHIFT & 1", "beside_faults_in_no_order"),
        ("streams : place_of", "streams : streams + 0 * !place_of", "sizes_that_are_always_used"),
        ("== addr + PAGE_SIZE)\n", "== addr + 4 * PAGE_SIZE)\n", "the_same_page_again"),
        ("ilog2(pages)", "ilog2(2 * pages)", "short_runs_waste_nothing"),
        ("STREAM_PAGES(stream) + 1, STREAM_PAGES_MAX", "STREAM_PAGES(stream) + 1, PAGE_SIZE - 1",
         "long_streams_are_counted_no_further"),
        ("STREAM_PAGES(*stream) + nr - 1", "STREAM_PAGES(*stream)", "ramp"),
        ("? end : start + PAGE_SIZE", "? end : end", "long_streams"),
    ],
)  # fmt: skip
def test_kunit_tests_find_a_mistake(tmp_path: Path, right: str, wrong: str, found_by: str) -> None:
    header = _HEADER.read_text()
    assert header.count(right) == 1
    assert found_by in _failed(tmp_path, header.replace(right, wrong))
