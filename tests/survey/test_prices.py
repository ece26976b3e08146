# SPDX-License-Identifier: GPL-2.0
"""The prices of faults that `trace` measures once for each boot."""

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from firsttouch.building.store import items, prune
from firsttouch.progress import Reporter
from firsttouch.survey.document import read_survey
from firsttouch.survey.run import PRICES_FILE, provide_prices

_PROVIDE = """
from pathlib import Path
from firsttouch.progress import Reporter
from firsttouch.survey.run import provide_prices
provide_prices(Path(), Reporter(), asked=True)
"""


@pytest.mark.long
def test_prices_are_measured_once_listed_and_pruned(own_cache: Path, tmp_path: Path) -> None:
    texts = []
    for _ in range(2):
        subprocess.run([sys.executable, "-c", _PROVIDE], cwd=tmp_path, check=True)
        texts.append((tmp_path / PRICES_FILE).read_text())
    assert texts[0] == texts[1]
    assert any(sample.metrics for sample in read_survey(tmp_path / PRICES_FILE).samples)
    (listed,) = (item for item in items() if item.kind == "surveys")
    assert listed.title.startswith("prices of faults")
    assert listed.title in {item.title for item in prune(0)}
    assert not list((own_cache / "surveys").iterdir())


def test_a_full_disk_is_a_reason_for_no_times(
    own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "a", None, "b")

    monkeypatch.setattr("firsttouch.survey.run._short_survey", fail)
    provide_prices(tmp_path, Reporter(), asked=True)
    assert capsys.readouterr().err.endswith("No time of faults: No space left on device\n")
