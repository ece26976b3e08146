# SPDX-License-Identifier: GPL-2.0
"""Each objection in docs/project/objections.md is answered by something that exists and is run.

What suites in guests must report is looked for where they run: test_suites.py.
"""

import re
from pathlib import Path

import pytest

from firsttouch.catalog.experiments import load_experiment
from firsttouch.files import LINUX, REPOSITORY
from tests.support.objections import Answer, objections
from tests.support.selftests import suite_names

_OBJECTIONS = objections()
_KUNIT = {path.name for path in LINUX.rglob("*_kunit.c")}


@pytest.mark.parametrize("objection", _OBJECTIONS)
def test_the_answer_exists(objection: str) -> None:
    assert _OBJECTIONS[objection]
    for answer in _OBJECTIONS[objection]:
        _check(answer)


def _check(answer: Answer) -> None:
    file = Path(answer.file)
    if file.parts[0] == "tests":
        function = answer.name.partition("[")[0]
        assert f"\ndef {function}(" in (REPOSITORY / file).read_text()
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
