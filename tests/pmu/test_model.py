# SPDX-License-Identifier: GPL-2.0
"""The cache model, without QEMU: against a second model, and against numbers found by hand."""

import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from firsttouch.files import REPOSITORY
from tests.pmu.conftest import DATA, HERE, PMU, must_run, run

pytestmark = pytest.mark.long

_TRACES = tomllib.loads((REPOSITORY / "tests/data/pmu-model.toml").read_text())["trace"]
MODEL = (PMU / "cache.c", PMU / "hierarchy.c")
Counts = dict[tuple[int, str], tuple[int, int, int]]


@pytest.fixture(scope="session")
def compare(build_model: Callable[..., Path]) -> Path:
    return build_model("compare", HERE / "compare.c", HERE / "reference.c", *MODEL)


@pytest.fixture(scope="session")
def trace(build_model: Callable[..., Path]) -> Callable[..., Counts]:
    program = build_model("trace", HERE / "trace.c", PMU / "options.c", *MODEL)

    def counts(accesses: Iterable[str], *options: str, cpus: int = 1) -> Counts:
        text = must_run(program, str(cpus), "out=none", *options, input="\n".join(accesses))
        rows = [line.split() for line in text.splitlines()]
        return {
            (int(row[0]), row[1]): (int(row[2]), int(row[3]), int(row[4]))
            for row in rows
            if row[2] != "set"
        }

    return counts


def test_twelve_million_random_accesses_agree_with_the_reference(compare: Path) -> None:
    assert must_run(compare, "1", "12000000") == "300 shapes, 12000000 accesses\n"


def test_model_is_clean_under_the_sanitizers(build_model: Callable[..., Path]) -> None:
    program = build_model(
        "compare-sanitized",
        *(HERE / "compare.c", HERE / "reference.c", *MODEL),
        flags=("-fsanitize=address,undefined", "-fno-sanitize-recover"),
    )
    assert must_run(program, "3", "400000") == "10 shapes, 400000 accesses\n"


def _expanded(text: str) -> list[str]:
    """The accesses of a line of pmu-model.toml, as trace.c reads them."""
    operation, cpu, addresses = text.split()
    words = [int(word) for word in addresses.split(":")]
    return [f"{operation} {cpu} {at:x}" for at in (range(*words) if words[1:] else words)]


@pytest.mark.parametrize("case", _TRACES, ids=lambda case: case["options"])
def test_a_trace_counts_what_was_found_by_hand(
    trace: Callable[..., Counts], case: dict[str, Any]
) -> None:
    accesses = [access for line in case["accesses"] for access in _expanded(line)]
    counts = trace(
        accesses * case.get("rounds", 1), *case["options"].split(), cpus=case.get("cpus", 1)
    )
    for place, expected in case["counts"].items():
        cpu, level = place.split()
        assert list(counts[int(cpu), level][: len(expected)]) == expected, place


def test_options_are_refused_with_their_reason(build_model: Callable[..., Path]) -> None:
    program = build_model("trace", HERE / "trace.c", PMU / "options.c", *MODEL)
    for options, words in DATA["refused"].items():
        done = run(program, "1", "out=none", *options.split(), input="")
        assert done.returncode == 2, options
        assert words in done.stderr and done.stderr.count("\n") == 1


def test_invalidations_by_name_are_broadcasts_if_they_end_in_their_domain(
    build_model: Callable[..., Path],
) -> None:
    program = build_model("invalidations", HERE / "invalidations.c", PMU / "decode.c")
    decoded = dict(line.split() for line in must_run(program).splitlines())
    assert {"vae1", "vae1is", "vae1os", "rvale1is"} <= decoded.keys()
    assert decoded == {name: str(int(name[-2:] in ("is", "os"))) for name in decoded}
