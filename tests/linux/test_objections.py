# SPDX-License-Identifier: GPL-2.0
"""Each objection in docs/project/objections.md is answered by something that exists and is run.

What suites in guests must report is looked for where they run: test_suites.py.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from firsttouch.catalog.experiments import load_experiment
from firsttouch.files import LINUX, REPOSITORY
from tests.support.objections import Answer, objections
from tests.support.selftests import suite_names

_OBJECTIONS = objections()
_KUNIT = {path.name for path in LINUX.rglob("*_kunit.c")}


@pytest.fixture(scope="module")
def collected() -> list[str]:
    """What pytest collects from the files that are named: each test with its parameters."""
    files = {answer.file for answers in _OBJECTIONS.values() for answer in answers}
    tests = sorted(file for file in files if file.startswith("tests/"))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", *tests],
        cwd=REPOSITORY, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return [line for line in done.stdout.splitlines() if "::" in line]


def test_there_are_objections() -> None:
    assert len(_OBJECTIONS) >= 20


@pytest.mark.parametrize("objection", _OBJECTIONS)
def test_the_answer_exists(objection: str, collected: list[str]) -> None:
    assert _OBJECTIONS[objection]
    for answer in _OBJECTIONS[objection]:
        _check(answer, collected)


def _check(answer: Answer, collected: list[str]) -> None:
    file = Path(answer.file)
    if file.parts[0] == "tests":
        function, _, parameter = answer.name.partition("[")
        parameters = r"(\[.*\])?"
        if parameter:
            parameters = rf"\[(.*-)?{re.escape(parameter.rstrip(']'))}(-.*)?\]"
        wanted = re.compile(re.escape(f"{file}::{function}") + parameters)
        assert any(wanted.fullmatch(test) for test in collected), f"{answer} is not collected"
    elif file.parts[0] == "experiments":
        metrics = {metric.name for metric in load_experiment(file.stem).metrics}
        assert not answer.name or answer.name in metrics
    elif file.suffix == ".md":
        headings = re.findall(r"^#+ (.*)$", (REPOSITORY / file).read_text(), re.M)
        assert answer.name in headings
    else:
        # What it reports is looked for by the test that runs it.
        assert file.stem in {Path(name).name for name in suite_names()} or file.name in _KUNIT
        assert answer.name
