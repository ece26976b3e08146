# SPDX-License-Identifier: GPL-2.0
"""What is learned of instructions, on this host: its KUnit tests, and that they can fail."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from firsttouch.catalog.releases import load_release, release_names
from firsttouch.places import LINUX

_SOURCE = LINUX / "mm/write_intent_learn.c"
_HEADER = LINUX / "include/linux/write_intent_learn.h"
_TESTS = LINUX / "mm/write_intent_learn_kunit.c"

# What the code and its tests need of the kernel's headers, and of KUnit.
_KERNEL = """\
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
#define PAGE_SIZE 4096UL
#define count_vm_event(event) ((void)0)
#undef __always_inline
#define __always_inline inline
#define min(a, b) ((a) < (b) ? (a) : (b))
struct kunit { bool failed; };
struct kunit_case { const char *name; void (*run)(struct kunit *test); };
#define KUNIT_CASE(test) { #test, test }
#define expect(condition) do { if (!(condition)) test->failed = true; } while (0)
#define KUNIT_EXPECT_TRUE(test, a) expect(a)
#define KUNIT_EXPECT_FALSE(test, a) expect(!(a))
#define KUNIT_EXPECT_EQ(test, a, b) expect((a) == (b))
#define KUNIT_EXPECT_EQ_MSG(test, a, b, ...) expect((a) == (b))
#define KUNIT_EXPECT_LE(test, a, b) expect((a) <= (b))
#define KUNIT_ASSERT_EQ KUNIT_EXPECT_EQ
#define KUNIT_ASSERT_GT(test, a, b) expect((a) > (b))
"""
_MAIN = """\
int main(void)
{
	for (struct kunit_case *c = write_intent_learn_cases; c->run; c++) {
		struct kunit test = { false };

		c->run(&test);
		printf("%s %s\\n", test.failed ? "failed" : "passed", c->name);
	}
	return 0;
}
"""


def _code() -> str:
    return _SOURCE.read_text() + _HEADER.read_text()


def _take(text: str, beginning: str) -> str:
    """Return the definition that has `beginning`, to its closing brace."""
    found = re.search(rf"^{beginning}.*?^\}}(?: \w+)?;?$", text, re.M | re.S)
    assert found, beginning
    return found[0]


def _failed(tmp_path: Path, code: str) -> set[str]:
    """Return which KUnit tests fail on the `code` of what is learned."""
    hooks = {
        re.sub(
            r"^\+",
            "",
            (load_release(name).hooks / "write-intent-learn.patch").read_text(),
            flags=re.M,
        )
        for name in release_names()
    }
    memory = {_take(hook, "struct write_intent_memory") for hook in hooks}
    slots = {re.search(r"^#define WRITE_INTENT_SLOTS.*$", hook, re.M) for hook in hooks}
    tests = _TESTS.read_text()
    (definition,) = memory
    program = [
        _KERNEL,
        *sorted({line[0] for line in slots if line}),
        *re.findall(r"^#define WRITE_INTENT_CREDIT.*$", code, re.M),
        definition,
        _take(code, "static inline unsigned int write_intent_slot"),
        _take(code, r"static __always_inline bool\nwrite_intent_known"),
        _take(code, "static __always_inline bool write_intent_spend"),
        _take(code, "void write_intent_lesson"),
        tests[tests.index("#define PC") : tests.index("static struct kunit_suite")],
        _MAIN,
    ]
    (tmp_path / "learn.c").write_text("\n".join(program))
    flags = ("-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-sign-compare")
    subprocess.run(["cc", *flags, "-o", tmp_path / "learn", tmp_path / "learn.c"], check=True)
    lines = subprocess.run([tmp_path / "learn"], check=True, stdout=subprocess.PIPE, text=True)
    outcomes = [line.split() for line in lines.stdout.splitlines()]
    assert len(outcomes) == tests.count("KUNIT_CASE(")
    return {name for outcome, name in outcomes if outcome == "failed"}


def test_what_is_learned_is_right(tmp_path: Path) -> None:
    assert not _failed(tmp_path, _code())


@pytest.mark.parametrize(
    ("right", "wrong", "found_by"),
    [
        pytest.param(
            "known->credit = huge ? 0 : known->credit - 1;",
            "known->credit = huge ? 0 : known->credit;",
            "a_lesson_pays_for_no_more_than_it_says",
            id="credit never runs out",
        ),
        pytest.param(
            "known->credit = known->grant;",
            "known->credit += 2 * known->grant;",
            "a_lesson_pays_for_no_more_than_it_says",
            id="a probe counts twice",
        ),
        pytest.param(
            "memory->pcs[slot] = memory->pc;\n\t\tknown->grant = 0;",
            "memory->pcs[slot] = memory->pc;",
            "instructions_of_one_slot_displace_each_other",
            id="another instruction's credit is kept",
        ),
        pytest.param(
            "known->grant = 0;\n\tknown->probing = true;",
            "known->probing = true;",
            "an_instruction_that_mostly_reads_gets_one_page",
            id="a probe that nobody writes is forgiven",
        ),
        pytest.param(
            "known->credit = huge ? 0 : known->credit - 1;",
            "known->credit = known->credit - 1 + 0 * huge;",
            "a_huge_page_takes_all_credit",
            id="a huge page costs no more than a small one",
        ),
        pytest.param(
            "if (memory->address != address)",
            "if (!address)",
            "a_write_elsewhere_teaches_nothing",
            id="any write is a lesson",
        ),
    ],
)
def test_a_mistake_is_found(tmp_path: Path, right: str, wrong: str, found_by: str) -> None:
    code = _code()
    assert code.count(right) == 1
    assert found_by in _failed(tmp_path, code.replace(right, wrong))
