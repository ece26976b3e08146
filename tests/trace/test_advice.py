# SPDX-License-Identifier: GPL-2.0
"""Which remedies are named, in which words, and how each is tried."""

from __future__ import annotations

from dataclasses import replace

import pytest

from firsttouch.errors import UserError
from firsttouch.trace.advice import advice_sentences, advise, remedy_to_try, with_remedy
from firsttouch.trace.allocators import Allocator, allocator_with
from firsttouch.trace.remedies import (
    AROUND,
    FILLED,
    HEAP,
    KEEP,
    MTHP_64,
    SPAWN,
    THP,
)
from firsttouch.trace.sites import Remedy
from tests.trace.test_results import trace


def advised(*saving: Remedy, kernel: str = "6.12.9-amd64") -> list[str]:
    traced = replace(trace(faults=1000), remedies=saving, allocator="glibc", kernel=kernel)
    return [advice.remedy.name for advice in advise(traced)]


@pytest.mark.parametrize(
    ("saving", "names"),
    [
        ((Remedy(KEEP, 500, 0), Remedy(FILLED, 600, 0)), [FILLED, KEEP]),
        ((Remedy(THP, 500, 0), Remedy(MTHP_64, 400, 0)), [THP]),
        # More than a quarter of what is touched in vain.
        ((Remedy(THP, 500, 300 * 4096), Remedy(MTHP_64, 400, 0)), [MTHP_64]),
        # What a variable does is named beside what saves more, and needs the host's setting.
        ((Remedy(MTHP_64, 500, 0), Remedy(HEAP, 400, 0)), [MTHP_64, HEAP]),
        ((Remedy(THP, 400, 0), Remedy(HEAP, 500, 0)), [HEAP]),
        ((Remedy(HEAP, 500, 300 * 4096),), []),
        ((Remedy(KEEP, 19, 0),), []),
        ((Remedy(AROUND, 99, 0), Remedy(SPAWN, 20, 0)), [SPAWN]),
        ((Remedy(AROUND, 100, 0),), [AROUND]),
    ],
)
def test_the_best_remedies_are_named_first(saving: tuple[Remedy, ...], names: list[str]) -> None:
    assert advised(*saving) == names


def test_a_kernel_without_sizes_of_huge_pages_is_told_of_none() -> None:
    saving = Remedy(THP, 300, 0), Remedy(MTHP_64, 500, 0)
    for kernel, name in (("6.1.0-50-amd64", THP), ("6.8.0-60-generic", MTHP_64)):
        assert advised(*saving, kernel=kernel) == [name]


@pytest.mark.parametrize(
    ("page_size", "size", "file"),
    [
        (4096, "2 MiB", "enabled"),
        (4096, "64 KiB", "hugepages-64kB/enabled"),
        (16384, "2 MiB", "hugepages-2048kB/enabled"),
    ],
)
def test_a_size_of_huge_pages_has_its_setting(page_size: int, size: str, file: str) -> None:
    """`transparent_hugepage/enabled` gives those of a whole page table, whatever their size."""
    saving = (Remedy(f"huge pages of {size}", 500, 0),)
    (advice,) = advise(replace(trace(faults=1000), remedies=saving, page_size=page_size))
    path = f"/sys/kernel/mm/transparent_hugepage/{file}"
    assert advice.action == f"huge pages of {size}, `always` in {path}"


def test_a_program_of_the_jvm_is_told_what_its_runtime_takes() -> None:
    saving = (Remedy(FILLED, 900, 0), Remedy(MTHP_64, 800, 0), Remedy(THP, 700, 0))
    traced = replace(trace(faults=1000), remedies=saving, allocator="JVM", kernel="6.12.9-amd64")
    assert [advice.remedy.name for advice in advise(traced)] == [MTHP_64, THP]
    assert remedy_to_try(traced, 1).environment == {
        "JAVA_TOOL_OPTIONS": "-XX:+UseTransparentHugePages"
    }


def test_only_what_a_variable_applies_can_be_tried() -> None:
    keep = replace(trace(faults=1000), remedies=(Remedy(KEEP, 500, 0),))
    assert "dirty_decay_ms" in str(remedy_to_try(replace(keep, allocator="jemalloc"), 1))
    for traced in (keep, replace(keep, allocator="JVM"), trace(faults=1000)):
        with pytest.raises(UserError, match="can apply no remedy"):
            remedy_to_try(traced, 1)
    with pytest.raises(UserError, match="apply 1 of the remedies"):
        remedy_to_try(replace(keep, allocator="glibc"), 2)


@pytest.mark.parametrize(
    ("allocator", "remedy", "variable"),
    [
        ("glibc", HEAP, "GLIBC_TUNABLES=glibc.malloc.hugetlb=1"),
        ("JVM", THP, "JAVA_TOOL_OPTIONS=-XX:+UseTransparentHugePages"),
        ("jemalloc", THP, "MALLOC_CONF=thp:always"),
    ],
)
def test_a_variable_asks_for_huge_pages(allocator: str, remedy: str, variable: str) -> None:
    traced = replace(trace(faults=1000), remedies=(Remedy(remedy, 500, 0),), allocator=allocator)
    (sentence,) = advice_sentences(traced)
    assert f"by {variable} before the command, where " in sentence
    assert remedy_to_try(traced, 1).remedy.name == remedy


def test_huge_pages_are_a_setting_of_the_host_where_no_variable_asks_for_them() -> None:
    for allocator in ("glibc", "Go", ""):
        traced = replace(trace(faults=1000), remedies=(Remedy(THP, 500, 0),), allocator=allocator)
        (sentence,) = advice_sentences(traced)
        assert "`always` in /sys/kernel/mm/transparent_hugepage/enabled" in sentence


def test_memory_that_no_setting_keeps_is_named() -> None:
    by_glibc = replace(trace(faults=1000), allocator="glibc", fault_kinds={"again": 300})
    (sentence,) = advice_sentences(replace(by_glibc, remedies=(Remedy(KEEP, 10, 0),)))
    assert sentence.startswith("290 faults (29.0 %) were on memory that the program maps itself")
    assert not list(advice_sentences(replace(by_glibc, allocator="jemalloc")))
    (remedy,) = advice_sentences(replace(by_glibc, remedies=(Remedy(KEEP, 290, 0),)))
    assert remedy.startswith("Remedy 1 saves 290 faults")


def test_the_answer_says_how_a_remedy_is_tried() -> None:
    both = replace(
        trace(faults=1000),
        remedies=(Remedy(FILLED, 600, 0), Remedy(KEEP, 500, 0)),
        allocator="glibc",
    )
    filled, keep = advice_sentences(both)
    assert ("--try" in filled, keep.endswith("(`--try 1`).")) == (False, True)
    assert remedy_to_try(both, 1).remedy.name == KEEP
    assert not any("--try" in sentence for sentence in advice_sentences(replace(both, command=())))


def test_a_remedy_keeps_the_settings_that_are_there() -> None:
    added = with_remedy({"GLIBC_TUNABLES": "b=2"}, {"GLIBC_TUNABLES": "a=1"})
    assert added == {"GLIBC_TUNABLES": "a=1:b=2"}
    assert with_remedy({"GODEBUG": "b=2"}, {"GODEBUG": "a=1"}) == {"GODEBUG": "a=1,b=2"}
    assert with_remedy({"MIMALLOC_PURGE_DELAY": "-1"}, {"MIMALLOC_PURGE_DELAY": "10"}) == {
        "MIMALLOC_PURGE_DELAY": "-1"
    }


@pytest.mark.parametrize(
    ("paths", "name"),
    [
        (("/usr/lib/libc.so.6", "/usr/lib/libjemalloc.so.2"), "jemalloc"),
        (("/usr/lib/libc.so.6", "[heap]"), "glibc"),
        (("[anon: Go: heap]",), "Go"),
        (("/bin/static", "[heap]"), ""),
    ],
)
def test_an_allocator_is_told_by_what_a_process_maps(paths: tuple[str, ...], name: str) -> None:
    used: Allocator | None = None
    for path in paths:
        used = allocator_with(used, path)
    assert (used.name if used else "") == name
