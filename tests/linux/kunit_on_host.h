// SPDX-License-Identifier: GPL-2.0
/* Stand-ins for the kernel's headers and for KUnit, to run mm/fault_ahead_kunit.c on the build host. */
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
/* As the kernel's, of one type: on ppc64 the order is no constant. */
#define min(a, b) ({ __typeof__(a) c = (a); __typeof__(b) d = (b); (void)(&c == &d); c < d ? c : d; })
static unsigned long pmd_order = 9;
#define HPAGE_PMD_ORDER pmd_order
#define HPAGE_PMD_NR (1 << HPAGE_PMD_ORDER)
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
#define require(condition) \
	do { if (!(condition)) { test->failed = true; longjmp(end_of_test, 1); } } while (0)
#define KUNIT_ASSERT_NOT_NULL(test, a) require(a)
#define KUNIT_EXPECT_PTR_EQ(test, a, b) expect((a) == (b))
#define KUNIT_EXPECT_EQ(test, a, b) expect((a) == (b))
#define KUNIT_ASSERT_EQ(test, a, b) require((a) == (b))
#define KUNIT_EXPECT_LT(test, a, b) expect((a) < (b))
#define KUNIT_EXPECT_FALSE(test, a) expect(!(a))
