# SPDX-License-Identifier: GPL-2.0
"""Generated pages are those of the results; numbers and names of the others resolve."""

import io
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache

import pytest
from rich.console import Console

from docs.evidence.draw.command import OTHERS, draw_others
from docs.evidence.draw.history import COUNTED, HISTORY
from docs.evidence.draw.predicted import FILE, NEAR, read_predicted
from docs.evidence.draw.sets import EVIDENCE, SETS, load_sets
from docs.evidence.draw.tables import page
from firsttouch.catalog.arms import load_arm
from firsttouch.cli.main import full_parser as parser
from firsttouch.cli.options import request_of
from firsttouch.files import REPOSITORY
from firsttouch.lab.plan import make_plan
from firsttouch.lab.results import Result, read_results
from firsttouch.processes import output
from firsttouch.views.answers import print_answers
from tests.support.contract import real_contract

_SETS = load_sets()
_DESIGN = (REPOSITORY / "docs/project/design.md").read_text()
_GENERATED = [*_SETS, *OTHERS]
_MEASURED = [(each.name, release) for each in _SETS.values() for release in each.releases]
_PROSE = sorted(file.name for file in EVIDENCE.glob("*.md") if file.stem not in _GENERATED)
# Pages with tables that were written by hand: each is to link to generated ones instead.
_WITH_TABLES = {"ahead.md", "posted.md"}
# A figure of a measurement: 1,083, -28.6 %, 0.57.
_FIGURE = re.compile(r"(?<![\w.])\d{1,3}(?:,\d{3})+|\d+\.\d+|\d{2,}(?= %)")
# Not counted: versions of software, and what a sentence's own command prints.
_NO_FIGURE = re.compile(r"`[^`]*`|\(http[^)]*\)|QEMU [\d.]+|\b(?:6\.12|7\.3)\b(?:\.\d+)?|GPL-2\.0")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_MOST_FIGURES = 5
# Lines of the answer in README.md.
_SHOWN = 10


@cache
def _results(name: str, release: str) -> tuple[Result, ...]:
    return read_results(_SETS[name].file(release))


@pytest.mark.long
@pytest.mark.parametrize("name", _SETS)
def test_page_of_a_set_is_what_make_evidence_writes(name: str) -> None:
    assert (EVIDENCE / f"{name}.md").read_text("utf-8") == page(_SETS[name])
    if not (REPOSITORY / ".git/shallow").exists():
        output(["git", "-C", REPOSITORY, "merge-base", "--is-ancestor", _SETS[name].commit, "HEAD"])


def test_other_generated_pages_are_what_make_evidence_writes() -> None:
    written = draw_others()
    for name, text in written.items():
        assert (REPOSITORY / name).read_text("utf-8") == text
    for folder in ("docs/reference/man", "docs/pictures"):
        assert {f"{folder}/{file.name}" for file in (REPOSITORY / folder).iterdir()} <= {*written}


def test_readme_has_the_first_lines_of_the_answer() -> None:
    sink = io.StringIO()
    console = Console(file=sink, width=100, highlight=False)
    print_answers(_SETS["default"].dataset("6.12"), console)
    answer = "".join(f"{line.rstrip()}\n" for line in sink.getvalue().splitlines()[:_SHOWN])
    assert f"```\n{answer}```" in (REPOSITORY / "README.md").read_text("utf-8")


def test_evidence_has_no_other_files() -> None:
    files = {file.name for file in EVIDENCE.iterdir() if file.is_file() and file.suffix != ".md"}
    assert files == {
        SETS, HISTORY, COUNTED, FILE.name, "predicted.toml", "predicted.c",
        *(_SETS[name].file(release).name for name, release in _MEASURED),
    }  # fmt: skip
    linked = "".join((EVIDENCE / name).read_text("utf-8") for name in _PROSE)
    assert [name for name in _GENERATED if f"{name}.md" not in linked] == []


@pytest.mark.parametrize("name", [name for name in _PROSE if name not in _WITH_TABLES])
def test_each_cited_figure_is_in_a_linked_table(name: str) -> None:
    text = (EVIDENCE / name).read_text("utf-8")
    cited = [*_figures(text)]
    linked = {link.partition("#")[0].removesuffix(".md") for link in _LINK.findall(text)}
    tables = "".join(
        (EVIDENCE / f"{table}.md").read_text("utf-8") for table in linked & {*_GENERATED}
    )
    printed = set(re.findall(r"(?<![\w.,])[\d.,]*\d", tables))
    assert [figure for figure in cited if figure not in printed] == []
    assert len(set(cited)) <= _MOST_FIGURES


def _figures(text: str) -> Iterator[str]:
    """Yield the figures of sentences that quote nobody and don't name the command to get them."""
    text = re.sub(r"^\| published \|(?:.*\n\|)*.*$", "", text, flags=re.M)
    for sentence in re.split(r"\n+|(?<=[.:]) ", text):
        if not re.search(r"`(?:firsttouch|make|\.venv/bin/python) [^`]*`|published", sentence):
            yield from _FIGURE.findall(_NO_FIGURE.sub("", sentence))


@pytest.mark.long
@pytest.mark.parametrize(("name", "release"), _MEASURED)
def test_results_are_those_of_the_command_that_is_printed(name: str, release: str) -> None:
    """All cells that it asks for, and no others: nothing that did not suit was left out."""
    of_set = _SETS[name]
    arguments = of_set.arguments(release)
    request = request_of(parser().parse_args(arguments), profile=arguments[0] == "profile")
    plan = make_plan(request, release, real_contract())
    assert sorted(result.cell.identity for result in _results(name, release)) == sorted(
        cell.identity for cell in plan.cells
    )


@pytest.mark.long
@pytest.mark.parametrize(("name", "release"), _MEASURED)
def test_a_set_was_measured_with_the_same_kernels_and_instruments(name: str, release: str) -> None:
    results = _results(name, release)
    images: dict[str, set[str]] = defaultdict(set)
    for result in results:
        digests = result.provenance.digests
        images[str(load_arm(result.cell.arm).kernel)].add(digests["kernel image"])
    assert {len(digests) for digests in images.values()} == {1}
    for part in ("kernel source", "QEMU", "PMU", "init", "ftbench"):
        # Layouts have other orders of ftbench's objects, and some cells have no PMU.
        same = [each for each in results if part != "ftbench" or not each.cell.layout]
        assert len({each.provenance.digests.get(part, "") for each in same} - {""}) <= 1, part


def test_predictions_that_are_far_off_are_explained() -> None:
    text = (EVIDENCE / "predicted.md").read_text("utf-8")
    for prediction in read_predicted():
        assert abs(prediction.off) <= NEAR or f"`{prediction.program}`" in text


def test_each_function_is_in_the_module_that_is_named_with_it() -> None:
    named = re.findall(r"`([a-z/_]+\.py)`(?:: `(\w+)`|)", _DESIGN)
    assert len(named) > 40
    for file, function in named:
        text = (REPOSITORY / "firsttouch" / file).read_text()
        assert not function or re.search(rf"^\s*(def|class) {function}\b", text, re.M), (
            file, function,
        )  # fmt: skip


@pytest.mark.parametrize("command", ["lab", "try", "compare"])
def test_the_way_of_a_command_is_short(command: str) -> None:
    section = _DESIGN.partition(f"## `firsttouch {command}`\n")[2].partition("\n## ")[0]
    assert 0 < len(re.findall(r"^\d+\. ", section, re.M)) <= 40
    assert 0 < len(set(re.findall(r"`([a-z/_]+\.py)`", section))) <= 25
