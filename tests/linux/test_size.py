# SPDX-License-Identifier: GPL-2.0
"""How much code a maintainer has to take: lines that are added, without blanks and comments.

Tests and documentation do not count: neither KUnit and selftests, nor their
options and makefiles, nor Documentation/ and MAINTAINERS.
"""

from __future__ import annotations

import re

import pytest

from firsttouch.building.overlay import all_series, patches_of
from firsttouch.catalog.releases import load_release, release_names
from firsttouch.files import LINUX

_LIMITS = {"write-intent": 180, "color-zero-page": 140, "fault-ahead": 150, "fault-around": 50}
_NO_CODE = re.compile(r"Documentation/|MAINTAINERS|tools/testing/|.*kunit")


def code_lines(text: str, name: str) -> int:
    """Return how many lines of `text`, of the file `name`, are code."""
    if name.endswith((".c", ".h", ".S")):
        text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
        text = re.sub(r"^\s*//.*$", "", text, flags=re.M)
    elif name.endswith(("Kconfig", "Makefile", "Kbuild")):
        text = re.sub(r"^\s*#.*$", "", text, flags=re.M)
    return sum(bool(line.strip()) for line in text.splitlines())


def changed_by(hook: str, sign: str) -> dict[str, str]:
    """Return the lines that a patch adds (+) or removes (-), by file.

    Help in Kconfig is documentation.
    """
    changed: dict[str, list[str]] = {}
    name, in_help = "", False
    for line in hook.splitlines():
        if line.startswith("+++ b/"):
            name = line[6:]
        elif name.endswith("Kconfig") and re.match(r"[+ ]\S", line):
            in_help = False
        if name.endswith("Kconfig") and re.match(r"\+\thelp", line):
            in_help = True
        if line.startswith(sign) and not line.startswith(3 * sign) and not in_help:
            changed.setdefault(name, []).append(line[1:])
    return {name: "\n".join(lines) for name, lines in changed.items()}


def size_of(series: str, release: str) -> dict[str, int]:
    """Return the lines of code that a series adds to a release, by file."""
    sizes: dict[str, int] = {}
    for patch in patches_of(load_release(release), series):
        # A test of KUnit is no code, nor is what its hook adds.
        if "kunit" in patch.name:
            continue
        hook = patch.hook(load_release(release))
        text = hook.read_text() if hook else ""
        new_files = {name: (LINUX / name).read_text() for name in patch.files}
        removed = changed_by(text, "-")
        for name, lines in [*new_files.items(), *changed_by(text, "+").items()]:
            if not _NO_CODE.match(name):
                sizes[name] = sizes.get(name, 0) + code_lines(lines, name)
        # A hook may replace lines of a new file by those of its release.
        for name in new_files.keys() & removed.keys():
            sizes[name] -= code_lines(removed[name], name)
    return sizes


@pytest.mark.parametrize("release", release_names())
@pytest.mark.parametrize("series", _LIMITS)
def test_a_series_is_small(series: str, release: str) -> None:
    sizes = size_of(series, release)
    for name, lines in sizes.items():
        print(f"{lines:5} {name}")
    print(f"{sum(sizes.values()):5} {series}, {release}")
    assert 40 < sum(sizes.values()) <= _LIMITS[series]
    cover = all_series()[series].cover
    if cover and "lines of code" in cover.read_text():
        assert f"It is {sum(sizes.values())} lines of code" in cover.read_text()


def test_comments_and_blanks_are_not_counted() -> None:
    text = "/* one\n * two\n */\n\nint a;\t/* b */\n// c\n"
    assert code_lines(text, "a.c") == 1
    hook = "+++ b/x/Kconfig\n@@\n+config A\n+\tbool\n+\thelp\n+\t  Text.\n+\n config B\n"
    assert {name: code_lines(text, name) for name, text in changed_by(hook, "+").items()} == {
        "x/Kconfig": 2
    }
    assert changed_by("--- a/b.c\n+++ b/b.c\n@@\n-int a;\n+int b;\n", "-") == {"b.c": "int a;"}
