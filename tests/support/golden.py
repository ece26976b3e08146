# SPDX-License-Identifier: GPL-2.0
"""Texts that tests compare word by word: in tests/golden.txt, each below its test, or in a file.

`make golden` writes them again. What changed is then read in the difference.
"""

import re
import shutil
from collections.abc import Mapping
from typing import Protocol

import pytest

from firsttouch.files import REPOSITORY

GOLDEN = REPOSITORY / "tests/golden.txt"
_FILES = REPOSITORY / "tests/data/golden"
_HEAD = "# SPDX-License-Identifier: GPL-2.0\n# `make golden` writes this file.\n"


class Golden(Protocol):
    def __call__(self, text: str, file: str = "") -> None: ...


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--golden", action="store_true", help="write the expected texts again")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With --golden, run the tests that have a text there, and begin with none."""
    if config.getoption("--golden"):
        items[:] = [item for item in items if "golden" in getattr(item, "fixturenames", ())]
        _write({})
        shutil.rmtree(_FILES, ignore_errors=True)
        _FILES.mkdir(parents=True)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """A function that compares a text with `file`, or with the one below the test's name."""
    name = request.node.nodeid.removeprefix("tests/")

    def compare(text: str, file: str = "") -> None:
        text = text.strip("\n")
        if request.config.getoption("--golden") and file:
            (_FILES / file).write_text(f"{text}\n", "utf-8")
        elif request.config.getoption("--golden"):
            _write({**_read(), name: text})
        expected = (_FILES / file).read_text("utf-8").strip("\n") if file else _read().get(name)
        assert text == expected, "if the new words are right: make golden"

    return compare


def _read() -> dict[str, str]:
    texts = re.findall(r"^== (.*)\n((?:(?!== ).*\n)*)", GOLDEN.read_text("utf-8"), re.M)
    return {name: text.strip("\n") for name, text in texts}


def _write(texts: Mapping[str, str]) -> None:
    sections = (f"\n== {name}\n{text}\n" for name, text in texts.items())
    GOLDEN.write_text(_HEAD + "".join(sections), "utf-8")
