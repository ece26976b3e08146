# SPDX-License-Identifier: GPL-2.0
"""The features' Documentation names the words that vm.write_intent takes, and no others."""

from __future__ import annotations

import re

import pytest

from firsttouch.catalog.releases import release_names
from firsttouch.places import LINUX
from tests.linux.test_size import changed_by

_DOCUMENTATION = LINUX / "Documentation"
_ROW = re.compile(r"^(off|rmw|exclusive|learn|\S+\+\S+|\d+) +\S", re.M)


def _modes(code: str) -> list[str]:
    found = re.search(r"write_intent_modes\[\] = \{(.*?)\};", code, re.S)
    assert found
    return re.findall(r'"(.*?)"', found[1])


def test_write_intent_faults_has_a_row_for_each_mode() -> None:
    modes = _modes((LINUX / "mm/write_intent.c").read_text())
    text = (_DOCUMENTATION / "arch/arm64/write-intent-faults.rst").read_text()
    assert _ROW.findall(text) == modes


@pytest.mark.parametrize("release", release_names())
def test_the_sysctl_and_what_is_learned_have_each_mode(release: str) -> None:
    hooks = LINUX / "hooks" / release
    question = changed_by((hooks / "write-intent-question.patch").read_text(), "+")
    learn = changed_by((hooks / "write-intent-learn.patch").read_text(), "+")
    modes = _modes(learn["mm/write_intent.c"])
    vm = "Documentation/admin-guide/sysctl/vm.rst"
    assert sorted(_ROW.findall(f"{question[vm]}\n{learn[vm]}")) == sorted(modes)
    text = (_DOCUMENTATION / "mm/write-intent-learn.rst").read_text()
    for mode in set(modes) - set(_modes((LINUX / "mm/write_intent.c").read_text())):
        assert f"``{mode}``" in text
