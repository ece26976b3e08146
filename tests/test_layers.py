# SPDX-License-Identifier: GPL-2.0
"""Each command of the Makefile runs the layers of tests that its description names."""

import re
import subprocess

import pytest

from firsttouch.files import REPOSITORY


@pytest.mark.parametrize(
    ("target", "left_out"),
    [("test", {"regress"}), ("test-fast", {"kernel", "long", "regress"})],
)
def test_a_command_leaves_out_the_other_layers(target: str, left_out: set[str]) -> None:
    said = subprocess.run(
        ["make", "-n", target], cwd=REPOSITORY, capture_output=True, text=True, check=True
    ).stdout
    (chosen,) = re.findall(r'pytest .*?-m "(.*?)"', said)
    assert set(chosen.split(" and ")) == {f"not {layer}" for layer in left_out}
