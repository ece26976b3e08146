# SPDX-License-Identifier: GPL-2.0
"""No figure of a document drifts: each is drawn from the raw results, and these are whole."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from docs.evidence.draw.command import REBUILT, traced_blocks
from docs.evidence.draw.declared import load_evidence
from docs.evidence.draw.documents import Drawing, names
from docs.evidence.draw.functions import function_rows
from docs.evidence.draw.history import COUNTED, HISTORY
from docs.evidence.draw.oracle import ORACLE
from docs.evidence.draw.predicted import ADVISED, PREDICTED
from docs.evidence.draw.streams import STREAMS
from docs.evidence.draw.traces import HERE, LINES
from firsttouch.analysis.cache_statistics import colored_caches
from firsttouch.analysis.published import published_figures
from firsttouch.catalog.arms import arm_names, load_arm
from firsttouch.catalog.experiment_files import experiment_names, load_experiment
from firsttouch.cli.main import full_parser as parser
from firsttouch.cli.options import request_of
from firsttouch.errors import UserError
from firsttouch.lab.plan import make_plan
from firsttouch.lab.results import Result
from firsttouch.places import REPOSITORY
from tests.support.contract import real_contract

_EVIDENCE = load_evidence()
_ARMS = arm_names()
_TRACED = traced_blocks(_EVIDENCE)
# It reads each set once; a set with a result that cannot be read is an error.
_DRAWING = Drawing(_EVIDENCE, _TRACED)
_BLOCK = re.compile(r"<!-- evidence: .*?<!-- end -->", re.DOTALL)
# What comes from measuring, as it is written: 1,083, -28.6 %, 0.57, 3 -> 1.
_MEASURED = re.compile(r"\d{1,3}(?:,\d{3})+|\d+\.\d+|\d[\d.]* ?%|-> ?\d")
# Releases, versions, a clock's frequency: nothing that a cell counts.
_NO_COUNT = re.compile(r"QEMU [\d.]+|\d+\.\d+\.\d+|\d+\.\d+ GHz|\b(?:6\.12|7\.3)\b(?! %)|GPL-2\.0")
# What the lab touches and is told, not what it finds.
_GIVEN = {"1,024", "2,048", "100,000"}


@pytest.fixture
def drawing() -> Drawing:
    return _DRAWING


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
@pytest.mark.parametrize("name", _EVIDENCE.documents)
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
@pytest.mark.parametrize("name", [n for n in _EVIDENCE.documents if n != "docs/trace.md"])
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
    shown = {block_name for name in _EVIDENCE.documents for block_name in names(_text(name))}
    assert shown == {*_EVIDENCE.blocks, *_TRACED}
    drawn = {name for block in _EVIDENCE.blocks.values() for name in block.sets}
    assert drawn == set(_EVIDENCE.sets)
    traced = HERE, LINES, ORACLE, PREDICTED, ADVISED, STREAMS
    files = {file.name for file in _EVIDENCE.folder.glob("*.*") if file.suffix != ".md"}
    assert files == {
        "tables.toml", REBUILT, HISTORY, COUNTED, *(f"{name}.jsonl.xz" for name in _EVIDENCE.sets),
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
    assert len(origins) == len(_EVIDENCE.blocks[name].sets)


@pytest.mark.long
@pytest.mark.parametrize("name", _EVIDENCE.sets)
def test_the_raw_results_are_those_of_the_command_that_is_printed(name: str) -> None:
    """All cells that it asks for, and no others: nothing that did not suit was left out.

    Cells of arms that have left are passed over.
    """
    of_set = _EVIDENCE.sets[name]
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
    results = [result for name in _EVIDENCE.sets for result in _results(name)]
    outcomes = {result.key: (result.lines, result.counts) for result in results}
    assert all(outcomes[each.key] == (each.lines, each.counts) for each in results)


_MEASURED_BLOCKS = [name for name, block in _EVIDENCE.blocks.items() if block.kind != "sources"]


@pytest.mark.long
@pytest.mark.parametrize("name", _MEASURED_BLOCKS)
def test_a_table_is_of_the_same_kernels(name: str) -> None:
    """One compiler, and for each release one source and one image a kind of arm.

    Other tables may be of an older or a newer image, so that one set can be
    measured again without all others.
    """
    results = [result for of_set in _EVIDENCE.blocks[name].sets for result in _results(of_set)]
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
    usual = [r for each in _EVIDENCE.sets.values() if not each.qemu for r in _results(each.name)]
    assert len(_values(usual, "QEMU")) == 1


@pytest.mark.long
@pytest.mark.parametrize("name", _MEASURED_BLOCKS)
def test_a_table_is_of_one_set_of_instruments(name: str) -> None:
    """One PMU, one init and one ftbench: what a reader compares was counted in the same way."""
    results = [result for each in _EVIDENCE.blocks[name].sets for result in _results(each)]
    for instrument in ("PMU", "init", "ftbench"):
        # Layouts have other orders of ftbench's objects.
        same = [each for each in results if instrument != "ftbench" or not each.cell.layout]
        assert len(_values(same, instrument)) <= 1, instrument


def _results(name: str) -> list[Result]:
    return _DRAWING.dataset(name).results()


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
    block = _EVIDENCE.blocks["floor"]
    rows = (replace(block.rows[0], where={"by": "store", "page": "1g"}),)
    changed = replace(_EVIDENCE, blocks={"floor": replace(block, rows=rows)})
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


# What the prose says of the figures, in words.


def test_one_fault_not_513_is_reproduced_on_6_12_only(drawing: Drawing) -> None:
    for release, verdict in (("6.12", "reproduced"), ("7.3", "not reproduced")):
        assert _verdicts(drawing, f"default-{release}", "one fault per 2 MiB, not 513") == {verdict}


def test_two_faults_become_one_on_every_machine_with_the_instruction(drawing: Drawing) -> None:
    rows = re.findall(
        r"^\| (ldadd|ldxr, stxr) (\S+) \| (.*) \|$", drawing.block("faults-on-machines"), re.M
    )
    assert len(rows) == 2 * len(drawing.dataset("machines-6.12").platforms())
    for by, machine, row in rows:
        figures = row.split(" | ")
        for faults, fewer, invalidations, left, _ in (figures[:5], figures[5:]):
            if by == "ldadd" and machine in ("cortex-a53", "cortex-a72"):
                assert faults == fewer == "-"
                continue
            upgraded = by == "ldadd"
            assert (faults, fewer) == ("2", "1" if upgraded else "2"), machine
            assert invalidations in ("2", "3")
            assert left == ("0" if upgraded else invalidations)


def test_faults_that_map_no_zero_page_pay_less_than_one_per_cent_on_7_3(drawing: Drawing) -> None:
    """On Neoverse N1, where no other work falls into the cells."""
    rows = re.findall(
        r"^\| neoverse-n1 (\S+) \| `kernel_per_fault` \| (.*) \|$",
        drawing.block("gain-nothing"),
        re.M,
    )
    kinds = {kind: row.split(" | ")[3:] for kind, row in rows}
    assert kinds.pop("access-flag") == ["-", "-", "-"]
    reads = ("execute-only", "read-after-updates")
    for kind, figures in kinds.items():
        stock, off, on = (int(figure.replace(",", "")) for figure in figures)
        assert abs(off - stock) < 0.01 * stock, kind
        assert abs(on - stock) < (0.04 if kind in reads else 0.01) * stock, kind


def test_the_system_time_is_not_judged(drawing: Drawing) -> None:
    for release in ("6.12", "7.3"):
        figure = "system time -60 % (Ampere Altra VM)"
        assert _verdicts(drawing, f"default-{release}", figure) == {"cannot be judged by counts"}


def test_colors_leave_the_mean_where_it_was_but_behind_a_random_l1d(drawing: Drawing) -> None:
    dataset = drawing.dataset("colors-6.12")
    random = {
        name
        for name, machine in dataset.catalog.machines.items()
        if machine.cpus[0].l1d.policy == "random"
    }
    caches = colored_caches(dataset)
    assert random == {"cortex-a53", "cortex-a55"} and len(caches) > 10
    for cache in caches:
        behind = cache.platform.machine in random
        if behind and (cache.level == "l1d" or cache.platform.machine == "cortex-a55"):
            assert cache.colored.mean > 1.5 * cache.stock.mean, cache
        else:
            assert cache.colored.mean == pytest.approx(cache.stock.mean, rel=0.02), cache


def test_more_colors_than_pages_leave_the_worst_case_at_twice_the_mean(drawing: Drawing) -> None:
    many = [each for each in colored_caches(drawing.dataset("colors-6.12")) if each.colors > 16]
    assert many
    assert all(cache.colored.worst > 1.95 * cache.colored.mean for cache in many)


def test_more_zero_pages_help_no_program_and_three_lose(drawing: Drawing) -> None:
    medians = {
        (program, metric): [
            int(median.replace(",", "")) for median in re.findall(r"\| ([\d,]+) \(", cells)
        ]
        for program, metric, cells in re.findall(
            r"^\| (\S+) \| `(\S+)` (\|.*)$", drawing.block("zero-programs"), re.M
        )
    }
    changes = {
        case: (color / stock - 1, color_l2 / stock - 1)
        for case, (stock, color, color_l2) in medians.items()
    }
    assert len(changes) == 12
    for (program, metric), (color, color_l2) in changes.items():
        if metric == "l2_misses":
            assert max(abs(color), abs(color_l2)) < 0.011, program
        elif program in ("numpy-sum", "scipy-zeros", "scipy-solver"):
            assert abs(color) < 0.01, program
    l1d = {
        program: change for (program, metric), change in changes.items() if metric == "l1d_misses"
    }
    assert l1d["numpy-matrix"] == pytest.approx((1 / 3, 3 / 2), abs=0.1)
    assert l1d["numpy-sum"][1] == pytest.approx(1 / 3, abs=0.05)
    assert l1d["scipy-zeros"][1] == pytest.approx(1 / 20, abs=0.01)


@pytest.mark.parametrize(("name", "layouts"), [("layouts", 100), ("layouts-on-7.3", 20)])
def test_counts_of_faults_and_verdicts_are_the_same_in_all_layouts(
    drawing: Drawing, name: str, layouts: int
) -> None:
    """But one verdict on 7.3, and a few faults in ten thousand with fault-ahead."""
    text = drawing.block(name)
    judged = re.findall(
        rf"^\| (.*?) \|.* reproduced in (?:only )?(\d+) % of {layouts} ", text, re.M
    )
    assert len(judged) == 5
    unsure = [claim for claim, share in judged if share != "100"]
    cached = "kernel instructions of a read of a file, from the page cache"
    assert unsure == ([cached] if name == "layouts-on-7.3" else [])
    change = r"(.*?) %.*?\|"
    counts = re.findall(
        rf"^\| (?:faults|TLB invalidations) of [^|]*\| `(\w+)` \|{4 * change}", text, re.M
    )
    assert [arm for arm, *_ in counts] == ["on", "on", "on", "on", "ahead", "ahead"]
    for arm, *changes in counts:
        least, *_, most = sorted(map(float, changes))
        assert most - least < (0.001 if arm == "on" else 0.05)


def test_the_mean_of_l1d_misses_doubles_on_cortex_a72(drawing: Drawing) -> None:
    means = {
        arm: float(mean)
        for arm, mean in re.findall(
            r"^\| L1D \| `(\S+)` \| \S+ \| (\S+) \|", drawing.block("l1d-pays-for-l2"), re.M
        )
    }
    assert means["color-l2"] == pytest.approx(2 * means["stock"], rel=0.05)


@pytest.mark.parametrize("release", ["6.12", "7.3"])
def test_fault_ahead_helps_openjdk_and_atomics_do_not(drawing: Drawing, release: str) -> None:
    cases = drawing.dataset(f"openjdk-{release}").cases
    touching = [case for case in cases if case.params["pretouch"] == "on"]
    assert len(touching) == 18
    for case in touching:
        faults = case.values("page_faults")
        # Threads of the JVM may miss a huge page or two: 512 faults each, on any arm.
        heap = (512 << 20) / 4096
        assert abs(faults["on"] - faults["stock"]) < 0.02 * heap
        if case.params["thp"] == "never":
            assert faults["ahead"] < 0.25 * faults["stock"]


def _verdicts(drawing: Drawing, name: str, figure: str) -> set[str]:
    claims = published_figures(drawing.dataset(name))
    return {claim.verdict for claim in claims if claim.published.figure == figure}


_GROUPED = [name for name, block in _EVIDENCE.blocks.items() if block.groups]


@pytest.mark.parametrize("name", _GROUPED)
def test_named_functions_explain_nine_tenths_of_what_a_release_changed(
    drawing: Drawing, name: str
) -> None:
    block = _EVIDENCE.blocks[name]
    rows = function_rows(block, {each: drawing.dataset(each) for each in block.sets})
    named = {function for group in block.groups for function in group.functions}
    assert len(named) == sum(len(group.functions) for group in block.groups)
    whole = sum(row.change or 0 for row in rows)
    explained = sum(row.change or 0 for row in rows if row.function in named)
    assert whole > 100
    assert 0.9 * whole <= explained <= 1.1 * whole
