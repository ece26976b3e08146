# SPDX-License-Identifier: GPL-2.0
"""Texts that tests compare word by word: they stand in tests/golden.txt, each below its test.

`make golden` writes them again. What changed is then read in the difference.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import pytest

from firsttouch.places import REPOSITORY

GOLDEN = REPOSITORY / "tests/golden.txt"
_HEAD = "# SPDX-License-Identifier: GPL-2.0\n# `make golden` writes this file.\n"

Golden = Callable[[str], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--golden", action="store_true", help="write tests/golden.txt again")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With --golden, run the tests that have a text there, and begin with none."""
    if config.getoption("--golden"):
        items[:] = [item for item in items if "golden" in getattr(item, "fixturenames", ())]
        _write({})


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """A function that compares a text with the one that stands below the test's name."""
    name = request.node.nodeid.removeprefix("tests/")

    def compare(text: str) -> None:
        text = text.strip("\n")
        if request.config.getoption("--golden"):
            _write({**_read(), name: text})
        assert text == _read().get(name), "if the new words are right: make golden"

    return compare


def _read() -> dict[str, str]:
    texts = re.findall(r"^== (.*)\n((?:(?!== ).*\n)*)", GOLDEN.read_text("utf-8"), re.M)
    return {name: text.strip("\n") for name, text in texts}


def _write(texts: Mapping[str, str]) -> None:
    sections = (f"\n== {name}\n{text}\n" for name, text in texts.items())
    GOLDEN.write_text(_HEAD + "".join(sections), "utf-8")
