// SPDX-License-Identifier: GPL-2.0
/*
 * Part of color_zero_page.c. The suite of the pages can be run again from
 * debugfs, and has to be for its check of the image's own mapping: KUnit runs
 * before mark_rodata_ro(). That of the sizing calls __init code: only at boot.
 */
#include <kunit/test.h>

#include <linux/module.h>
#include <linux/sizes.h>
#include <linux/uaccess.h>

#include <asm/sections.h>

struct geometry {
	const char *what;
	u32 size, sets, line, ways;
	u32 way_size;			/* expected, 0 if to be refused */
};

static const struct geometry geometries[] __initconst = {
	/* Those of CPUs. */
	{ "Cortex-A55, 32K 4-way", SZ_32K, 128, 64, 4, SZ_8K },
	{ "Cortex-A72, 32K 2-way", SZ_32K, 256, 64, 2, SZ_16K },
	{ "Cortex-A75, 64K 16-way", SZ_64K, 64, 64, 16, SZ_4K },
	{ "Neoverse N1, 64K 4-way", SZ_64K, 256, 64, 4, SZ_16K },
	{ "A64FX, 256-byte lines", SZ_64K, 64, 256, 4, SZ_16K },
	{ "Apple M1, 128K 8-way", SZ_128K, 256, 64, 8, SZ_16K },
	{ "48K, 12 ways", 48 * SZ_1K, 64, 64, 12, SZ_4K },
	{ "fully associative", SZ_4K, 1, 64, 64, 64 },
	{ "one way", SZ_16K, 256, 64, 1, SZ_16K },
	{ "2 GiB, as one way", SZ_2G, SZ_32M, 64, 1, SZ_2G },
	/* Missing: cacheinfo leaves the field at 0. */
	{ "nothing", 0, 0, 0, 0 },
	{ "no size", 0, 256, 64, 4 },
	{ "no sets", SZ_64K, 0, 64, 0 },
	{ "no line size", SZ_64K, 256, 0, 0 },
	{ "no ways", SZ_64K, 256, 64, 0 },
	{ "size alone", SZ_64K, 0, 0, 0 },
	{ "fully associative, as cacheinfo leaves it", SZ_4K, 1, 64, 0 },
	/* Not powers of two. */
	{ "100 sets", 6400 * 10, 100, 64, 10 },
	{ "48-byte lines", 48 * 256 * 5, 256, 48, 5 },
	/* Do not add up. */
	{ "one set too many", SZ_64K, 512, 64, 4 },
	{ "one byte too many", SZ_64K + 1, 256, 64, 4 },
	{ "one byte too few", SZ_64K - 1, 256, 64, 4 },
	{ "smaller than a way", SZ_8K, 256, 64, 0 },
	/* Absurd, also where the product overflows 32 or 64 bits. */
	{ "ways of -1 in 32 bits", SZ_64K, 256, 64, U32_MAX },
	{ "size 2^32-1", U32_MAX, 256, 64, U32_MAX / SZ_16K },
	{ "sets 2^32-1", SZ_64K, U32_MAX, 64, 0 },
	{ "sets 2^26, product 2^32", 0x10, SZ_64M, 64, 1 },
	{ "line size 2^32-1", SZ_64K, 256, U32_MAX, 0 },
	{ "all ones", U32_MAX, U32_MAX, U32_MAX, U32_MAX },
	{ "all 2^31", SZ_2G, SZ_2G, SZ_2G, SZ_2G },
};

static void __init way_size_of_geometry(struct kunit *test)
{
	for (size_t i = 0; i < ARRAY_SIZE(geometries); i++) {
		const struct geometry *g = &geometries[i];
		struct cacheinfo cache = {
			.size = g->size,
			.number_of_sets = g->sets,
			.coherency_line_size = g->line,
			.ways_of_associativity = g->ways,
		};

		KUNIT_EXPECT_EQ_MSG(test, way_size(&cache), g->way_size, "%s",
				    g->what);
	}
}

static void __init l1d_of_leaves(struct kunit *test)
{
	struct cacheinfo leaves[] = {
		{ .level = 1, .type = CACHE_TYPE_INST },
		{ .level = 1, .type = CACHE_TYPE_DATA },
		{ .level = 2, .type = CACHE_TYPE_UNIFIED },
	};
	struct cpu_cacheinfo caches = {
		.info_list = leaves,
		.num_leaves = ARRAY_SIZE(leaves),
	};

	KUNIT_EXPECT_PTR_EQ(test, l1d_of(&caches), &leaves[1]);
	leaves[1].type = CACHE_TYPE_UNIFIED;
	KUNIT_EXPECT_PTR_EQ(test, l1d_of(&caches), &leaves[1]);
	caches.num_leaves = 1;
	KUNIT_EXPECT_NULL(test, l1d_of(&caches));

	/* What cacheinfo leaves behind where it found nothing. */
	caches.info_list = NULL;
	KUNIT_EXPECT_NULL(test, l1d_of(&caches));
}

static void __init parameter_understood(struct kunit *test)
{
	unsigned int colors = 1234;
	char arg[16];

	KUNIT_EXPECT_EQ(test, parse_zero_page_colors("auto", &colors), 0);
	KUNIT_EXPECT_EQ(test, colors, 0);
	KUNIT_EXPECT_EQ(test, parse_zero_page_colors("off", &colors), 0);
	KUNIT_EXPECT_EQ(test, colors, 1);

	for (unsigned int n = 1; n <= 1024; n *= 2) {
		snprintf(arg, sizeof(arg), "%u", n);
		KUNIT_EXPECT_EQ(test, parse_zero_page_colors(arg, &colors), 0);
		KUNIT_EXPECT_EQ(test, colors, min(n, ZERO_PAGES));
	}
}

static void __init parameter_refused(struct kunit *test)
{
	static const char * const args[] __initconst = {
		"", "0", "-1", "3", "12", "4294967296", "1e1", "4k",
		"4 ", " 4", "4,auto", "AUTO", "autos", "l1", "l2", "on",
		"18446744073709551617",
	};

	for (size_t i = 0; i < ARRAY_SIZE(args); i++) {
		unsigned int colors = 1234;

		KUNIT_EXPECT_NE_MSG(test, 0,
				    parse_zero_page_colors(args[i], &colors),
				    "%s", args[i]);
		KUNIT_EXPECT_EQ(test, colors, 1234);
	}
}

/* Whatever the machine's firmware says: what is chosen can be handed out. */
static void __init choice_is_within_reserve(struct kunit *test)
{
	unsigned int colors = colors_of_caches();

	KUNIT_EXPECT_TRUE(test, is_power_of_2(colors));
	KUNIT_EXPECT_LE(test, colors, ZERO_PAGES);
}

static struct kunit_case __refdata sizing_cases[] = {
	KUNIT_CASE(way_size_of_geometry),
	KUNIT_CASE(l1d_of_leaves),
	KUNIT_CASE(parameter_understood),
	KUNIT_CASE(parameter_refused),
	KUNIT_CASE(choice_is_within_reserve),
	{}
};

static struct kunit_suite sizing_suite = {
	.name = "color_zero_page_sizing",
	.test_cases = sizing_cases,
};

kunit_test_init_section_suite(sizing_suite);

static void zero_page_has_color_of_address(struct kunit *test)
{
	unsigned long colors = arm64_zero_page_mask + 1;
	unsigned long page;

	for (page = 0; page < 2 * ZERO_PAGES; page++) {
		unsigned long addr = SZ_1G + page * PAGE_SIZE;
		unsigned long pfn = page_to_pfn(ZERO_PAGE(addr));

		KUNIT_EXPECT_EQ(test, (pfn - arm64_zero_pfn) % colors, page % colors);
		KUNIT_EXPECT_EQ(test, page_to_pfn(ZERO_PAGE(addr + 1)), pfn);
		KUNIT_EXPECT_EQ(test, page_to_pfn(ZERO_PAGE(addr + PAGE_SIZE - 1)), pfn);
		KUNIT_EXPECT_TRUE(test, is_zero_pfn(pfn));
	}
}

static void range_ends_with_reserve(struct kunit *test)
{
	unsigned long first = PHYS_PFN(__pa_symbol(empty_zero_page));
	unsigned long pfn;

	KUNIT_EXPECT_EQ(test, page_to_pfn(ZERO_PAGE(0)), first);
	KUNIT_EXPECT_FALSE(test, is_zero_pfn(first - 1));
	for (pfn = first; pfn < first + ZERO_PAGES; pfn++)
		KUNIT_EXPECT_TRUE(test, is_zero_pfn(pfn));
	KUNIT_EXPECT_FALSE(test, is_zero_pfn(first + ZERO_PAGES));

	KUNIT_EXPECT_FALSE(test, is_zero_pfn(0));
	KUNIT_EXPECT_FALSE(test, is_zero_pfn(ULONG_MAX));
	KUNIT_EXPECT_FALSE(test, is_zero_pfn(first + (1UL << 36)));
}

static void reserve_is_zero(struct kunit *test)
{
	KUNIT_EXPECT_NULL(test, memchr_inv(empty_zero_page, 0,
					   sizeof(empty_zero_page)));
	KUNIT_EXPECT_NULL(test, memchr_inv(lm_alias(empty_zero_page), 0,
					   sizeof(empty_zero_page)));
}

/* Writes the zero that is there, so that a page that lets it stays zero. */
static void expect_read_only(struct kunit *test, void *start)
{
	const u64 zero = 0;
	size_t i;

	for (i = 0; i < sizeof(empty_zero_page); i += PAGE_SIZE) {
		KUNIT_EXPECT_EQ(test, -EFAULT,
				copy_to_kernel_nofault(start + i, &zero,
						       sizeof(zero)));
		KUNIT_EXPECT_EQ(test, -EFAULT,
				copy_to_kernel_nofault(start + i + PAGE_SIZE - sizeof(zero),
						       &zero, sizeof(zero)));
	}
}

static void write_to_linear_alias_faults(struct kunit *test)
{
	expect_read_only(test, lm_alias(empty_zero_page));
}

static void write_to_image_mapping_faults(struct kunit *test)
{
	/* What mark_rodata_ro() makes read-only ... */
	KUNIT_EXPECT_GE(test, (unsigned long)empty_zero_page,
			(unsigned long)__start_rodata);
	KUNIT_EXPECT_LE(test, (unsigned long)empty_zero_page + sizeof(empty_zero_page),
			(unsigned long)__init_begin);

	/* ... and by now has, if this is run from debugfs. */
	if (system_state == SYSTEM_RUNNING)
		expect_read_only(test, (void *)empty_zero_page);
}

static struct kunit_case pages_cases[] = {
	KUNIT_CASE(zero_page_has_color_of_address),
	KUNIT_CASE(range_ends_with_reserve),
	KUNIT_CASE(reserve_is_zero),
	KUNIT_CASE(write_to_linear_alias_faults),
	KUNIT_CASE(write_to_image_mapping_faults),
	{}
};

static struct kunit_suite pages_suite = {
	.name = "color_zero_page",
	.test_cases = pages_cases,
};

kunit_test_suite(pages_suite);
