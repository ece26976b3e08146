# SPDX-License-Identifier: GPL-2.0
"""No figure of a document drifts: each is drawn from the raw results, and these are whole."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from docs.evidence.draw.command import REBUILT
from docs.evidence.draw.declared import load_evidence
from docs.evidence.draw.documents import Drawing, names
from docs.evidence.draw.history import COUNTED, HISTORY
from docs.evidence.draw.oracle import ORACLE
from docs.evidence.draw.predicted import ADVISED, PREDICTED
from docs.evidence.draw.streams import STREAMS
from docs.evidence.draw.traces import HERE, LINES
from firsttouch.catalog.arms import arm_names, load_arm
from firsttouch.catalog.experiment_files import experiment_names, load_experiment
from firsttouch.cli.main import full_parser as parser
from firsttouch.cli.options import request_of
from firsttouch.errors import UserError
from firsttouch.lab.plan import make_plan
from firsttouch.lab.results import Result
from firsttouch.places import REPOSITORY
from tests.docs.conftest import DRAWING, EVIDENCE, TRACED
from tests.support.contract import real_contract

_ARMS = arm_names()
_BLOCK = re.compile(r"<!-- evidence: .*?<!-- end -->", re.DOTALL)
# What comes from measuring, as it is written: 1,083, -28.6 %, 0.57, 3 -> 1.
_MEASURED = re.compile(r"\d{1,3}(?:,\d{3})+|\d+\.\d+|\d[\d.]* ?%|-> ?\d")
# Releases, versions, a clock's frequency: nothing that a cell counts.
_NO_COUNT = re.compile(r"QEMU [\d.]+|\d+\.\d+\.\d+|\d+\.\d+ GHz|\b(?:6\.12|7\.3)\b(?! %)|GPL-2\.0")
# What the lab touches and is told, not what it finds.
_GIVEN = {"1,024", "2,048", "100,000"}


def _text(name: str) -> str:
    return (REPOSITORY / name).read_text("utf-8")


def _quoted(name: str) -> Iterator[str]:
    """Return what the postings say: a table's column of that name, and what experiments quote."""
    published = False
    for line in _text(name).splitlines():
        published = line.startswith("| published |") or (published and line.startswith("|"))
        if published:
            yield line.split("|")[1]
    for experiment in map(load_experiment, experiment_names()):
        yield from (published_figure.figure for published_figure in experiment.published)


@pytest.mark.long
@pytest.mark.parametrize("name", EVIDENCE.documents)
def test_a_document_has_the_figures_of_the_raw_results(drawing: Drawing, name: str) -> None:
    """`make evidence` draws them again; it takes a minute and no kernel."""
    text = _text(name)
    assert drawing.document(text) == text


def test_a_picture_has_the_figures_of_the_raw_results(drawing: Drawing) -> None:
    pictures = drawing.pictures()
    assert len(pictures) == 2
    for name, text in pictures.items():
        assert _text(name) == text
        assert Path(name).name in _text("README.md") + _text("docs/reading-the-report.md")


# docs/trace.md also has what recorder/bench measures, and limits.
@pytest.mark.parametrize("name", [n for n in EVIDENCE.documents if n != "docs/trace.md"])
def test_no_figure_is_written_by_hand(name: str) -> None:
    said = _NO_COUNT.sub("", _BLOCK.sub("", _text(name)))
    quotes = " ".join(_quoted(name))
    figures = [
        figure
        for figure in _MEASURED.findall(said)
        if figure not in quotes and figure not in _GIVEN
    ]
    # An "at most" of a published claim is a limit.
    assert [figure for figure in figures if figure != "1 %"] == []


def test_each_block_is_shown_and_each_set_is_drawn() -> None:
    shown = {block_name for name in EVIDENCE.documents for block_name in names(_text(name))}
    assert shown == {*EVIDENCE.blocks, *TRACED}
    drawn = {name for block in EVIDENCE.blocks.values() for name in block.sets}
    assert drawn == set(EVIDENCE.sets)
    traced = HERE, LINES, ORACLE, PREDICTED, ADVISED, STREAMS
    files = {file.name for file in EVIDENCE.folder.glob("*.*") if file.suffix != ".md"}
    assert files == {
        "tables.toml", REBUILT, HISTORY, COUNTED, *(f"{name}.jsonl.xz" for name in EVIDENCE.sets),
        *(f"{name}.json.xz" for name in traced if name in shown),
        f"{PREDICTED}.toml", f"{PREDICTED}.c",
    }  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("name", ["layouts", "above-floor", "every-machine", "worst-and-mean"])
def test_a_block_names_release_version_source_and_command(drawing: Drawing, name: str) -> None:
    origins = re.findall(
        r"^- Linux \d+\.\d+\.\d+, source `sha256:[0-9a-f]{64}`: `firsttouch lab --release [^`]+`$",
        drawing.block(name),
        re.M,
    )
    assert len(origins) == len(EVIDENCE.blocks[name].sets)


@pytest.mark.long
@pytest.mark.parametrize("name", EVIDENCE.sets)
def test_the_raw_results_are_those_of_the_command_that_is_printed(name: str) -> None:
    """All cells that it asks for, and no others: nothing that did not suit was left out.

    Cells of arms that have left are passed over.
    """
    of_set = EVIDENCE.sets[name]
    of_set = replace(of_set, arms=tuple(arm for arm in of_set.arms if arm in _ARMS))
    layouts = tuple(range(of_set.layouts))
    request = request_of(
        parser().parse_args(of_set.arguments()), profile=of_set.profile, layouts=layouts
    )
    plan = make_plan(request, of_set.release, real_contract())
    here = [result.cell for result in _results(name) if result.cell.arm in _ARMS]
    assert sorted(cell.identity for cell in here) == sorted(cell.identity for cell in plan.cells)


@pytest.mark.long
def test_the_same_guest_gave_the_same_in_all_sets() -> None:
    """Two experiments may ask for the same guest; then it is one, with one outcome."""
    results = [result for name in EVIDENCE.sets for result in _results(name)]
    outcomes = {result.key: (result.lines, result.counts) for result in results}
    assert all(outcomes[each.key] == (each.lines, each.counts) for each in results)


_MEASURED_BLOCKS = [name for name, block in EVIDENCE.blocks.items() if block.kind != "sources"]


@pytest.mark.long
@pytest.mark.parametrize("name", _MEASURED_BLOCKS)
def test_a_table_is_of_the_same_kernels(name: str) -> None:
    """One compiler, and for each release one source and one image a kind of arm.

    Other tables may be of an older or a newer image, so that one set can be
    measured again without all others.
    """
    results = [result for of_set in EVIDENCE.blocks[name].sets for result in _results(of_set)]
    assert len({result.provenance.compiler for result in results}) <= 1
    arms = {result.cell.arm for result in results}
    # Arms that have left were all of the changed kernel.
    kinds = {arm: load_arm(arm).kernel.kind if arm in _ARMS else "changed" for arm in arms}
    images: dict[tuple[str, str], set[str]] = defaultdict(set)
    sources: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for result in results:
        provenance, release = result.provenance, result.cell.release
        images[release, kinds[result.cell.arm]].add(provenance.digests["kernel image"])
        sources[release].add((provenance.kernel_version, provenance.digests["kernel source"]))
    assert {len(digests) for digests in images.values()} <= {1}
    assert {len(versions) for versions in sources.values()} <= {1}
    assert len(set().union(*images.values())) == len(images)


@pytest.mark.long
def test_sets_without_a_newer_qemu_are_of_one() -> None:
    usual = [r for each in EVIDENCE.sets.values() if not each.qemu for r in _results(each.name)]
    assert len(_values(usual, "QEMU")) == 1


@pytest.mark.long
@pytest.mark.parametrize("name", _MEASURED_BLOCKS)
def test_a_table_is_of_one_set_of_instruments(name: str) -> None:
    """One PMU, one init and one ftbench: what a reader compares was counted in the same way."""
    results = [result for each in EVIDENCE.blocks[name].sets for result in _results(each)]
    for instrument in ("PMU", "init", "ftbench"):
        # Layouts have other orders of ftbench's objects.
        same = [each for each in results if instrument != "ftbench" or not each.cell.layout]
        assert len(_values(same, instrument)) <= 1, instrument


def _results(name: str) -> list[Result]:
    return DRAWING.dataset(name).results()


def _values(results: list[Result], digest: str) -> set[str]:
    values = {result.provenance.digests.get(digest, "") for result in results}
    # Some cells have no PMU.
    return values - {""} if digest == "PMU" else values


def test_a_figure_that_was_changed_by_hand_is_found(drawing: Drawing) -> None:
    text = _text("docs/evidence/write-intent.md")
    (figure,) = re.findall(r"^\| swp \| ([\d,]+) \|", text, re.M)
    broken = text.replace(f"| swp | {figure} |", "| swp | 1,000 |")
    assert broken != text
    assert drawing.document(broken) == text


@pytest.mark.parametrize(
    "text",
    [
        "<!-- evidence: floor -->",
        "<!-- end -->",
        "<!-- evidence: floor --> <!-- evidence: floor --> <!-- end -->",
        "<!-- evidence: flor --> <!-- end -->",
    ],
)
def test_a_marker_that_is_wrong_is_named(drawing: Drawing, text: str) -> None:
    with pytest.raises(UserError, match=r"other marker|no <!-- end -->|did you mean|flor"):
        drawing.document(text)


def test_a_row_that_was_not_measured_is_an_error(drawing: Drawing) -> None:
    block = EVIDENCE.blocks["floor"]
    rows = (replace(block.rows[0], where={"by": "store", "page": "1g"}),)
    changed = replace(EVIDENCE, blocks={"floor": replace(block, rows=rows)})
    with pytest.raises(UserError, match="no case of populate has store 1g"):
        Drawing(changed).block("floor")


@pytest.mark.parametrize(
    ("folder", "key"),
    [("kind = 'row'", "kind"), ("sets = ['default']", "sets"), ("like = 'b'", "like")],
)
def test_a_mistake_in_the_tables_is_named(tmp_path: Path, folder: str, key: str) -> None:
    (tmp_path / "tables.toml").write_text(
        "documents = []\n[[set]]\nname = 'default-6.12'\nrelease = '6.12'\n"
        f"[[block]]\nname = 'a'\n{folder}\n"
    )
    with pytest.raises(UserError, match=rf"tables\.toml: block\[0\]\.{key}"):
        load_evidence(tmp_path)
