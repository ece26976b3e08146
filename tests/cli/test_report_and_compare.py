# SPDX-License-Identifier: GPL-2.0
"""`firsttouch report` and `firsttouch compare`: exit status, and what goes to which stream."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

from firsttouch.files import EXPERIMENTS
from firsttouch.lab.results import pack_results, read_results
from tests.conftest import Firsttouch
from tests.support import made_results
from tests.support.made_results import Made


def _results() -> list[Made]:
    return made_results.plan(EXPERIMENTS, ["populate"], page="4k")


def test_what_is_left_out_is_said_and_the_rest_is_drawn(
    firsttouch: Firsttouch, tmp_path: Path
) -> None:
    ours = _results()
    made_results.write(tmp_path, [replace(ours[0], experiment="fork-cost"), *ours])
    done = firsttouch("report", tmp_path)
    assert done.returncode == 1
    said = " ".join(done.stderr.split())
    assert "Traceback" not in said
    assert "experiments/fork-cost.toml is missing" in said
    assert "2 faults on the stock kernel" in (tmp_path / "report.html").read_text()


def test_sets_are_compared_on_the_terminal_and_as_json(
    firsttouch: Firsttouch, tmp_path: Path
) -> None:
    made_results.write(tmp_path / "a", _results())
    other = [replace(made, release="7.3", kernel_version="7.3.1") for made in _results()]
    made_results.write(tmp_path / "b", other)
    done = firsttouch("compare", "a", "b")
    assert (done.returncode, done.stderr) == (0, "")
    first, second, sentence, *_ = done.stdout.splitlines()
    assert (first, second) == ("A: a", "B: b")
    assert sentence.startswith("Comparable: ")
    document = json.loads(firsttouch("compare", "--json", "a", "b").stdout)
    assert document["kind"] == "comparable"


def test_packed_results_are_compared_with_a_directory(
    firsttouch: Firsttouch, tmp_path: Path
) -> None:
    made_results.write(tmp_path / "a", _results())
    pack_results(tmp_path / "b.jsonl.xz", read_results(tmp_path / "a"))
    (tmp_path / "c.gz").write_bytes(gzip.compress((tmp_path / "a/results.jsonl").read_bytes()))
    for packed in ("b.jsonl.xz", "c.gz"):
        done = firsttouch("compare", "a", packed)
        assert (done.returncode, done.stderr) == (0, "")
        assert "The same: 16 cells" in done.stdout
    assert firsttouch("report", "c.gz").stdout == "report.html\n"


def test_sets_that_contradict_each_other_fail(firsttouch: Firsttouch, tmp_path: Path) -> None:
    made_results.write(tmp_path / "a", _results())
    other = [replace(made, metrics={**made.metrics, "page_faults": 1}) for made in _results()]
    made_results.write(tmp_path / "b", other)
    assert firsttouch("compare", "a", "b").returncode == 1
