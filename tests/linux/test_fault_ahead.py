# SPDX-License-Identifier: GPL-2.0
"""The KUnit tests of streams (fault-ahead) on this host, and mistakes that they must find."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from firsttouch.places import LINUX

_HEADER = LINUX / "mm/fault_ahead.h"
_TESTS = LINUX / "mm/fault_ahead_kunit.c"

# Stand-ins for the kernel's headers and for KUnit.
_KERNEL = """\
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define BIT(n) (1UL << (n))
#define GENMASK(high, low) ((2UL << (high)) - (1UL << (low)))
#define PAGE_SHIFT 12
#define PAGE_SIZE 4096UL
#define PAGE_MASK (~(PAGE_SIZE - 1))
#define offset_in_page(p) ((unsigned long)(p) & ~PAGE_MASK)
#undef __always_inline
#define __always_inline inline
#define ARRAY_SIZE(a) ((int)(sizeof(a) / sizeof((a)[0])))
#define min(a, b) ((a) < (b) ? (a) : (b))
#define HPAGE_PMD_NR 512
#define swap(a, b) do { unsigned long c = (a); (a) = (b); (b) = c; } while (0)
#define round_down(x, y) ((x) & ~((y) - 1))
#define ilog2(x) (63 - __builtin_clzl(x))
struct task_struct { unsigned long fault_streams[3]; };
#define DECLARE_BITMAP(name, bits) bool name[bits]
#define set_bit(n, map) ((map)[n] = true)
#define clear_bit(n, map) ((map)[n] = false)
#define test_bit(n, map) ((map)[n])
#define bitmap_set(map, first, n) memset((map) + (first), true, n)
static unsigned long find_next_bit(const bool *map, unsigned long bits, unsigned long n)
{
	while (n < bits && !map[n])
		n++;
	return n;
}
static int bitmap_weight(const bool *map, int bits)
{
	int sum = 0;

	while (bits--)
		sum += map[bits];
	return sum;
}
struct kunit { bool failed; };
struct kunit_case { const char *name; void (*run)(struct kunit *test); };
#define KUNIT_CASE(test) { #test, test }
#define GFP_KERNEL 0
#define kunit_kzalloc(test, size, gfp) calloc(1, size)
#define expect(condition) do { if (!(condition)) test->failed = true; } while (0)
static jmp_buf end_of_test;
#define require(condition) \\
	do { if (!(condition)) { test->failed = true; longjmp(end_of_test, 1); } } while (0)
#define KUNIT_ASSERT_NOT_NULL(test, a) require(a)
#define KUNIT_EXPECT_PTR_EQ(test, a, b) expect((a) == (b))
#define KUNIT_EXPECT_EQ(test, a, b) expect((a) == (b))
#define KUNIT_ASSERT_EQ(test, a, b) require((a) == (b))
#define KUNIT_EXPECT_LT(test, a, b) expect((a) < (b))
#define KUNIT_EXPECT_FALSE(test, a) expect(!(a))
"""
_MAIN = """\
int main(void)
{
	for (struct kunit_case *c = cases; c->run; c++) {
		struct kunit test = { false };

		if (!setjmp(end_of_test))
			c->run(&test);
		printf("%s %s\\n", test.failed ? "failed" : "passed", c->name);
	}
	return 0;
}
"""


def _failed(tmp_path: Path, header: str) -> set[str]:
    """Return which KUnit tests fail with `header` for mm/fault_ahead.h."""
    tests = _TESTS.read_text()
    program = [
        _KERNEL,
        re.sub(r"^#include.*$", "", header, flags=re.M),
        tests[tests.index("#define PAGES") : tests.index("static struct kunit_suite")],
        _MAIN,
    ]
    (tmp_path / "streams.c").write_text("\n".join(program))
    flags = ("-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-sign-compare")
    subprocess.run(["cc", *flags, "-o", tmp_path / "streams", tmp_path / "streams.c"], check=True)
    lines = subprocess.run(
        ["timeout", "10", tmp_path / "streams"], check=True, stdout=subprocess.PIPE, text=True
    )
    outcomes = [line.split() for line in lines.stdout.splitlines()]
    assert len(outcomes) == tests.count("KUNIT_CASE(")
    return {name for outcome, name in outcomes if outcome == "failed"}


def test_streams_pass_their_kunit_tests(tmp_path: Path) -> None:
    assert not _failed(tmp_path, _HEADER.read_text())


@pytest.mark.parametrize(
    ("right", "wrong", "found_by"),
    [
        ("< 3 * PAGE_SIZE", "< 2 * PAGE_SIZE", "long_streams"),
        ("stream - addr <", "stream - addr - PAGE_SIZE <", "long_streams"),
        ("(addr >> PAGE_SHIFT & 1)", "(addr & 1)", "three_streams_at_once"),
        ("1 + (addr >> PAGE_SHIFT & 1)", "addr >> PAGE_SHIFT & 1", "beside_faults_in_no_order"),
        ("streams : place_of", "streams : streams + 0 * !place_of", "sizes_that_are_always_used"),
        ("== addr + PAGE_SIZE)\n", "== addr + 4 * PAGE_SIZE)\n", "the_same_page_again"),
        ("ilog2(pages)", "ilog2(2 * pages)", "short_runs_waste_nothing"),
        ("STREAM_PAGES(stream) + 1, STREAM_PAGES_MAX", "STREAM_PAGES(stream) + 1, PAGE_SIZE - 1",
         "long_streams_are_counted_no_further"),
        ("STREAM_PAGES(*stream) + nr - 1", "STREAM_PAGES(*stream)", "ramp"),
        ("? end : start + PAGE_SIZE", "? end : end", "long_streams"),
    ],
)  # fmt: skip
def test_kunit_tests_find_a_mistake(tmp_path: Path, right: str, wrong: str, found_by: str) -> None:
    header = _HEADER.read_text()
    assert header.count(right) == 1
    assert found_by in _failed(tmp_path, header.replace(right, wrong))
