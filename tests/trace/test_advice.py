# SPDX-License-Identifier: GPL-2.0
"""Which remedies are named, in which words, and how each is tried."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from firsttouch.errors import UserError
from firsttouch.trace.advice import Advice, advise, facts_of, remedy_to_try, with_remedy
from firsttouch.trace.allocators import Allocator, allocator_with
from firsttouch.trace.remedies import BOTH, HEAP, KEEP, MTHP_64, THP
from firsttouch.trace.sites import FILE_NAME, Remedy, read_trace_of, trace_document
from tests.trace.test_results import trace


def advised(*saving: Remedy, kernel: str = "6.12.9-amd64") -> list[str]:
    traced = replace(trace(faults=1000), remedies=saving, allocator="glibc", kernel=kernel)
    return [advice.remedy.name for advice in advise(traced)]


@pytest.mark.parametrize(
    ("saving", "names"),
    [
        # A variable comes first, then what saves more.
        ((Remedy(KEEP, 500, 0), Remedy(MTHP_64, 600, 0)), [KEEP, MTHP_64]),
        # What saves no time is none.
        ((Remedy(KEEP, 900, 0, -1.0), Remedy(MTHP_64, 400, 0)), [MTHP_64]),
        ((Remedy(THP, 500, 0), Remedy(MTHP_64, 400, 0)), [MTHP_64]),
        # More than a quarter of what is touched in vain.
        ((Remedy(THP, 500, 0), Remedy(MTHP_64, 400, 300 * 4096)), [THP]),
        ((Remedy(MTHP_64, 500, 0), Remedy(HEAP, 400, 0)), [HEAP, MTHP_64]),
        ((Remedy(HEAP, 500, 300 * 4096),), []),
        ((Remedy(HEAP, 0, 0, most=300),), [HEAP]),
        # Both are one variable, by which what is chance is sure.
        (
            (Remedy(KEEP, 300, 0), Remedy(HEAP, 400, 0, most=900), Remedy(BOTH, 800, 0, most=900)),
            [BOTH, HEAP, KEEP],
        ),
        ((Remedy(KEEP, 19, 0),), []),
    ],
)
def test_the_best_remedies_are_named_first(saving: tuple[Remedy, ...], names: list[str]) -> None:
    assert advised(*saving) == names


@pytest.mark.parametrize(
    ("page_size", "size", "file"),
    [(4096, THP, "enabled"), (4096, MTHP_64, "hugepages-64kB/enabled"),
     (16384, THP, "hugepages-2048kB/enabled")],
)  # fmt: skip
def test_a_size_of_huge_pages_has_its_setting(page_size: int, size: str, file: str) -> None:
    """`transparent_hugepage/enabled` gives those of a whole page table, whatever their size."""
    traced = replace(trace(faults=1000), remedies=(Remedy(size, 500, 0),), page_size=page_size)
    (advice,) = advise(traced)
    assert advice.how == f"echo always >/sys/kernel/mm/transparent_hugepage/{file}"


def test_what_this_host_cannot_apply_is_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel of the trace is this one, which has no such file."""
    kernel = os.uname().release
    monkeypatch.setattr("firsttouch.trace.advice._THP", "/proc/none")
    assert advised(Remedy(MTHP_64, 900, 0), kernel=kernel) == []
    assert advised(Remedy(MTHP_64, 900, 0), kernel="6.12-another") == [MTHP_64]


@pytest.mark.parametrize(("saved", "said"), [(310, "-30 to 60 %"), (40, "up to -60 %")])
def test_a_range_is_said_where_chance_decides(saved: int, said: str) -> None:
    advice = Advice(Remedy(HEAP, saved, 0, most=580), "", "", {})
    assert facts_of(trace(faults=1000), 1, advice)[0] == said


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
    (advice,) = advise(traced)
    assert advice.how.startswith(f"{variable} (needs madvise in ")
    assert remedy_to_try(traced, 1).remedy.name == remedy


def test_only_what_a_variable_applies_can_be_tried() -> None:
    keep = replace(trace(faults=1000), remedies=(Remedy(KEEP, 500, 0), Remedy(MTHP_64, 900, 0)))
    for traced, can in ((keep, "none"), (replace(keep, allocator="glibc"), "1")):
        with pytest.raises(UserError, match=f"applies {can} of this program's remedies"):
            remedy_to_try(traced, 2)


def test_a_number_is_that_of_the_list_that_was_printed(tmp_path: Path) -> None:
    printed = trace()
    for command in (printed.command, ("another",)):
        with pytest.raises(UserError, match="no trace of this command: run it without --try"):
            read_trace_of(command, tmp_path)
        (tmp_path / FILE_NAME).write_text(trace_document(printed, ()))
    assert read_trace_of(printed.command, tmp_path) == printed


def test_a_remedy_keeps_the_settings_that_are_there() -> None:
    added = with_remedy({"GLIBC_TUNABLES": "b=2"}, {"GLIBC_TUNABLES": "a=1"})
    assert added == {"GLIBC_TUNABLES": "a=1:b=2"}
    assert with_remedy({"GODEBUG": "b=2"}, {"GODEBUG": "a=1"}) == {"GODEBUG": "a=1,b=2"}
    assert with_remedy({"TCMALLOC_RELEASE_RATE": "0"}, {"TCMALLOC_RELEASE_RATE": "9"}) == {
        "TCMALLOC_RELEASE_RATE": "0"
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
