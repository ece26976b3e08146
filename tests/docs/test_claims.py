# SPDX-License-Identifier: GPL-2.0
"""What the prose of the documents says of the figures, in words."""

from __future__ import annotations

import re

import pytest

from docs.evidence.draw.documents import Drawing
from docs.evidence.draw.functions import function_rows
from firsttouch.analysis.cache_statistics import colored_caches
from firsttouch.analysis.published import published_figures
from tests.docs.conftest import EVIDENCE


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


_GROUPED = [name for name, block in EVIDENCE.blocks.items() if block.groups]


@pytest.mark.parametrize("name", _GROUPED)
def test_named_functions_explain_nine_tenths_of_what_a_release_changed(
    drawing: Drawing, name: str
) -> None:
    block = EVIDENCE.blocks[name]
    rows = function_rows(block, {each: drawing.dataset(each) for each in block.sets})
    named = {function for group in block.groups for function in group.functions}
    assert len(named) == sum(len(group.functions) for group in block.groups)
    whole = sum(row.change or 0 for row in rows)
    explained = sum(row.change or 0 for row in rows if row.function in named)
    assert whole > 100
    assert 0.9 * whole <= explained <= 1.1 * whole
