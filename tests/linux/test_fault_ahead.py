# SPDX-License-Identifier: GPL-2.0
"""What streams of fault-ahead are given, on this host: the KUnit tests, and that they can fail."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from firsttouch.catalog.releases import load_release, release_names
from firsttouch.places import LINUX

_HEADER = LINUX / "mm/fault_ahead.h"
_SOURCE = LINUX / "mm/fault_ahead.c"
_TESTS = LINUX / "mm/fault_ahead_kunit.c"

# What the code and its tests need of the kernel's headers, and of KUnit.
_KERNEL = """\
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
typedef uint8_t u8;
typedef uint32_t u32;
#define U8_MAX 255
#define BIT(n) (1UL << (n))
#define PAGE_SHIFT 12
#define PAGE_SIZE 4096UL
#define PAGE_MASK (~(PAGE_SIZE - 1))
#define offset_in_page(p) ((p) & ~PAGE_MASK)
#undef __always_inline
#define __always_inline inline
#define ARRAY_SIZE(a) ((int)(sizeof(a) / sizeof((a)[0])))
#define IS_ALIGNED(x, a) (((x) & ((unsigned long)(a) - 1)) == 0)
#define min(a, b) ((a) < (b) ? (a) : (b))
#define min3(a, b, c) min(min(a, b), c)
#define ilog2(x) (31 - __builtin_clz(x))
#define __ffs(x) ((unsigned long)__builtin_ctzl(x))
struct rnd_state { uint64_t state; };
#define prandom_seed_state(random, seed) ((random)->state = (seed))
static u32 prandom_u32_state(struct rnd_state *random)
{
	random->state = random->state * 6364136223846793005ull + 1442695040888963407ull;
	return random->state >> 32;
}
struct kunit { bool failed; };
struct kunit_case { const char *name; void (*run)(struct kunit *test); };
#define KUNIT_CASE(test) { #test, test }
#define expect(condition) do { if (!(condition)) test->failed = true; } while (0)
#define KUNIT_EXPECT_TRUE(test, a) expect(a)
#define KUNIT_EXPECT_EQ(test, a, b) expect((a) == (b))
#define KUNIT_EXPECT_LE(test, a, b) expect((a) <= (b))
#define KUNIT_EXPECT_GE(test, a, b) expect((a) >= (b))
#define KUNIT_FAIL(test, ...) expect(false)
"""
_MAIN = """\
int main(void)
{
	for (struct kunit_case *c = cases; c->run; c++) {
		struct kunit test = { false };

		c->run(&test);
		printf("%s %s\\n", test.failed ? "failed" : "passed", c->name);
	}
	return 0;
}
"""


def _take(text: str, beginning: str) -> str:
    """Return the definition that has `beginning`, to its closing brace."""
    definition = re.search(rf"^{beginning}.*?^\}};?$", text, re.M | re.S)
    assert definition, beginning
    return definition[0]


def _code() -> str:
    return _HEADER.read_text() + _SOURCE.read_text()


def _failed(tmp_path: Path, code: str) -> set[str]:
    """Return which KUnit tests fail on the `code` of streams."""
    (state,) = {
        _take(re.sub(r"^\+", "", hook.read_text(), flags=re.M), "struct fault_ahead ")
        for hook in (load_release(name).hooks / "fault-ahead.patch" for name in release_names())
    }
    tests = _TESTS.read_text()
    program = [
        _KERNEL,
        *re.findall(r"^#define (?:\w+_EARNED|\w+_CREDIT|\w*ORDER|STREAM\w*)[\t(].*$", code, re.M),
        state,
        _take(code, "static __always_inline bool ended_near"),
        _take(code, "static __always_inline unsigned long .find_stream"),
        _take(code, "static int affordable_order"),
        _take(code, "static void go_on"),
        tests[tests.index("#define LARGEST") : tests.index("static struct kunit_suite")],
        _MAIN,
    ]
    (tmp_path / "streams.c").write_text("\n".join(program))
    flags = ("-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-sign-compare")
    subprocess.run(["cc", *flags, "-o", tmp_path / "streams", tmp_path / "streams.c"], check=True)
    lines = subprocess.run([tmp_path / "streams"], check=True, stdout=subprocess.PIPE, text=True)
    outcomes = [line.split() for line in lines.stdout.splitlines()]
    assert len(outcomes) == tests.count("KUNIT_CASE(")
    return {name for outcome, name in outcomes if outcome == "failed"}


def test_streams_are_right(tmp_path: Path) -> None:
    assert not _failed(tmp_path, _code())


@pytest.mark.parametrize(
    ("right", "wrong", "found_by"),
    [
        pytest.param("MOST_CREDIT) - others", "MOST_CREDIT)", "the_bound_holds", id="free"),
        pytest.param(
            "\tif (next == end)\n\t\treturn;\n", "", "the_bound_holds", id="the same page earns"
        ),
        pytest.param("addr : next)", "addr : addr)", "aligned", id="not aligned downwards"),
        pytest.param("stream - addr <", "stream - addr - PAGE_SIZE <", "upwards", id="downwards"),
        pytest.param("< 3 * PAGE_SIZE", "< 2 * PAGE_SIZE", "downwards", id="upwards"),
        pytest.param("+ PAGES_EARNED, MOST_CREDIT)", "+ PAGES_EARNED, 8UL)", "credit_ends", id="8"),
        pytest.param("next + others * PAGE_SIZE", "next", "upwards", id="an end that stays"),
    ],
)
def test_a_mistake_is_found(tmp_path: Path, right: str, wrong: str, found_by: str) -> None:
    code = _code()
    assert code.count(right) == 1
    assert found_by in _failed(tmp_path, code.replace(right, wrong))
