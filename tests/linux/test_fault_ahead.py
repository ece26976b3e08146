# SPDX-License-Identifier: GPL-2.0
"""The KUnit tests of streams (fault-ahead) on this host."""

import re
import subprocess
from pathlib import Path

from firsttouch.files import LINUX
from tests.linux.conftest import HERE


def test_streams_pass_their_kunit_tests(tmp_path: Path) -> None:
    tests = (LINUX / "mm/fault_ahead_kunit.c").read_text()
    program = [
        '#include "kunit_on_host.h"',
        re.sub(r"^#include.*$", "", (LINUX / "mm/fault_ahead.h").read_text(), flags=re.M),
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
    assert not [name for outcome, name in outcomes if outcome == "failed"]
