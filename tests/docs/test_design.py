# SPDX-License-Identifier: GPL-2.0
"""docs/project/design.md names modules and functions that there are, and ways that are short."""

import re

import pytest

from firsttouch.files import REPOSITORY

_PAGE = (REPOSITORY / "docs/project/design.md").read_text()


def test_each_function_is_in_the_module_that_is_named_with_it() -> None:
    named = re.findall(r"`([a-z/_]+\.py)`(?:: `(\w+)`|)", _PAGE)
    assert len(named) > 40
    for file, function in named:
        text = (REPOSITORY / "firsttouch" / file).read_text()
        assert not function or re.search(rf"^\s*(def|class) {function}\b", text, re.M), (
            file, function,
        )  # fmt: skip


@pytest.mark.parametrize("command", ["lab", "try", "compare"])
def test_the_way_of_a_command_is_short(command: str) -> None:
    section = _PAGE.partition(f"## `firsttouch {command}`\n")[2].partition("\n## ")[0]
    assert 0 < len(re.findall(r"^\d+\. ", section, re.M)) <= 40
    assert 0 < len(set(re.findall(r"`([a-z/_]+\.py)`", section))) <= 25
