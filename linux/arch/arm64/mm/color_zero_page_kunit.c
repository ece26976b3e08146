// SPDX-License-Identifier: GPL-2.0
/*
 * Two suites. The one of the sizing calls __init code and runs at boot only.
 * The one of the pages can be run again from debugfs, and has to be for its
 * check of the image's own mapping: KUnit's tests run before mark_rodata_ro().
 */
#include <kunit/test.h>

#include <linux/acpi.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sizes.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include <asm/sections.h>

#include "color_zero_page.h"

struct geometry {
	const char *what;
	u32 size, sets, line, ways;
	u32 way_size;			/* expected, 0 if to be refused ... */
	enum cache_property property;	/* ... because of this */
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
	{ "Neoverse L2, 1M 8-way", SZ_1M, 2048, 64, 8, SZ_128K },
	{ "A64FX L2, 8M 16-way", SZ_8M, 2048, 256, 16, SZ_512K },
	/* One set, with the ways counted and as cacheinfo leaves them. */
	{ "fully associative", SZ_4K, 1, 64, 64, 64 },
	{ "fully associative, ways 0", SZ_4K, 1, 64, 0, 64 },
	{ "one way", SZ_16K, 256, 64, 1, SZ_16K },
	/* Missing: cacheinfo leaves the field at 0. */
	{ "nothing", 0, 0, 0, 0, 0, CACHE_SIZE },
	{ "no size", 0, 256, 64, 4, 0, CACHE_SIZE },
	{ "no sets", SZ_64K, 0, 64, 0, 0, CACHE_SETS },
	{ "no line size", SZ_64K, 256, 0, 0, 0, CACHE_LINE_SIZE },
	{ "no ways", SZ_64K, 256, 64, 0, 0, CACHE_WAYS },
	{ "size alone", SZ_64K, 0, 0, 0, 0, CACHE_SETS },
	/* Not powers of two. */
	{ "100 sets", SZ_64K, 100, 64, 10, 0, CACHE_SETS },
	{ "255 sets", SZ_64K, 255, 64, 4, 0, CACHE_SETS },
	{ "48-byte lines", SZ_64K, 256, 48, 5, 0, CACHE_LINE_SIZE },
	/* Do not add up. */
	{ "one set too many", SZ_64K, 512, 64, 4, 0, CACHE_SIZE },
	{ "one byte too many", SZ_64K + 1, 256, 64, 4, 0, CACHE_SIZE },
	{ "one byte too few", SZ_64K - 1, 256, 64, 4, 0, CACHE_SIZE },
	{ "smaller than a way", SZ_8K, 256, 64, 0, 0, CACHE_SIZE },
	{ "fully associative with a rest", SZ_4K + 1, 1, 64, 0, 0, CACHE_SIZE },
	{ "ways of -1", SZ_64K, 256, 64, U8_MAX, 0, CACHE_SIZE },
	{ "ways of -1 in 32 bits", SZ_64K, 256, 64, U32_MAX, 0, CACHE_SIZE },
	/* Absurd, also where the product overflows 32 or 64 bits. */
	{ "size 2^31", SZ_2G, 256, 64, SZ_2G / SZ_16K, 0, CACHE_SIZE },
	{ "size 2^31, as one way", SZ_2G, SZ_32M, 64, 1, 0, CACHE_SETS },
	{ "size 2^32-1", U32_MAX, 256, 64, U32_MAX / SZ_16K, 0, CACHE_SIZE },
	{ "sets 2^31", SZ_64K, SZ_2G, 64, 0, 0, CACHE_SETS },
	{ "sets 2^32-1", SZ_64K, U32_MAX, 64, 0, 0, CACHE_SETS },
	{ "sets 2^26, product 2^32", 0x10, SZ_64M, 64, 1, 0, CACHE_SETS },
	{ "line size 2^31", SZ_64K, 256, SZ_2G, 0, 0, CACHE_LINE_SIZE },
	{ "line size 2^32-1", SZ_64K, 256, U32_MAX, 0, 0, CACHE_LINE_SIZE },
	{ "line size 4096", SZ_64K, 4, SZ_4K, 4, 0, CACHE_LINE_SIZE },
	{ "line size 1", SZ_64K, SZ_16K, 1, 4, 0, CACHE_LINE_SIZE },
	{ "all ones", U32_MAX, U32_MAX, U32_MAX, U32_MAX, 0, CACHE_SETS },
	{ "all 2^31", SZ_2G, SZ_2G, SZ_2G, SZ_2G, 0, CACHE_LINE_SIZE },
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
		struct cache_way way = zero_page_cache_way(&cache);

		KUNIT_EXPECT_EQ_MSG(test, way.size, g->way_size, "%s", g->what);
		if (g->way_size)
			continue;
		KUNIT_EXPECT_EQ_MSG(test, way.property, g->property, "%s",
				    g->what);
		KUNIT_EXPECT_NOT_NULL_MSG(test, way.fault, "%s", g->what);
	}
}

static void __init colors_of_way(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, zero_page_colors_of_way(64), 1);
	KUNIT_EXPECT_EQ(test, zero_page_colors_of_way(PAGE_SIZE / 2), 1);
	KUNIT_EXPECT_EQ(test, zero_page_colors_of_way(PAGE_SIZE), 1);
	KUNIT_EXPECT_EQ(test, zero_page_colors_of_way(2 * PAGE_SIZE), 2);
	KUNIT_EXPECT_EQ(test, zero_page_colors_of_way(64 * PAGE_SIZE), 64);
}

static void __init cache_of_level(struct kunit *test)
{
	struct cacheinfo leaves[] = {
		{ .level = 1, .type = CACHE_TYPE_INST },
		{ .level = 1, .type = CACHE_TYPE_DATA },
		{ .level = 2, .type = CACHE_TYPE_UNIFIED },
		{ .level = 3, .type = CACHE_TYPE_NOCACHE },
	};
	struct cpu_cacheinfo caches = {
		.info_list = leaves,
		.num_leaves = ARRAY_SIZE(leaves),
	};

	KUNIT_EXPECT_PTR_EQ(test, zero_page_cache(&caches, 1), &leaves[1]);
	KUNIT_EXPECT_PTR_EQ(test, zero_page_cache(&caches, 2), &leaves[2]);
	KUNIT_EXPECT_NULL(test, zero_page_cache(&caches, 3));
	KUNIT_EXPECT_NULL(test, zero_page_cache(&caches, 4));

	caches.num_leaves = 1;
	KUNIT_EXPECT_NULL(test, zero_page_cache(&caches, 1));

	/* What cacheinfo leaves behind where it found nothing. */
	caches.info_list = NULL;
	KUNIT_EXPECT_NULL(test, zero_page_cache(&caches, 1));
}

static void __init request_understood(struct kunit *test)
{
	struct zero_page_request req = {};
	char text[ZERO_PAGE_REQUEST_LEN];
	unsigned int colors;

	KUNIT_EXPECT_EQ(test, zero_page_parse_request("auto", &req), 0);
	KUNIT_EXPECT_EQ(test, req.policy, ZERO_PAGE_L1D);
	zero_page_request_text(&req, text);
	KUNIT_EXPECT_STREQ(test, text, "auto");

	KUNIT_EXPECT_EQ(test, zero_page_parse_request("l2", &req), 0);
	KUNIT_EXPECT_EQ(test, req.policy, ZERO_PAGE_L2);
	zero_page_request_text(&req, text);
	KUNIT_EXPECT_STREQ(test, text, "l2");

	KUNIT_EXPECT_EQ(test, zero_page_parse_request("off", &req), 0);
	KUNIT_EXPECT_EQ(test, req.policy, ZERO_PAGE_FIXED);
	KUNIT_EXPECT_EQ(test, req.colors, 1);
	zero_page_request_text(&req, text);
	KUNIT_EXPECT_STREQ(test, text, "off");

	for (colors = 1; colors <= ZERO_PAGES_MAX; colors *= 2) {
		char arg[ZERO_PAGE_REQUEST_LEN];

		snprintf(arg, sizeof(arg), "%u", colors);
		KUNIT_EXPECT_EQ(test, zero_page_parse_request(arg, &req), 0);
		KUNIT_EXPECT_EQ(test, req.policy, ZERO_PAGE_FIXED);
		KUNIT_EXPECT_EQ(test, req.colors, colors);
		zero_page_request_text(&req, text);
		KUNIT_EXPECT_STREQ(test, text, colors == 1 ? "off" : arg);
	}
}

static void __init request_refused(struct kunit *test)
{
	static const char * const args[] __initconst = {
		NULL, "", "0", "-1", "3", "12", "256", "4294967296", "1e1",
		"0x4", "4k", "4 ", " 4", "4,auto", "AUTO", "autos", "l1", "l3",
		"on", "18446744073709551617",
	};
	const struct zero_page_request before = {
		.policy = ZERO_PAGE_L2,
		.colors = 1234,
	};

	for (size_t i = 0; i < ARRAY_SIZE(args); i++) {
		struct zero_page_request req = before;

		KUNIT_EXPECT_NE_MSG(test, zero_page_parse_request(args[i], &req),
				    0, "%s", args[i] ?: "(none)");
		KUNIT_EXPECT_MEMEQ(test, &req, &before, sizeof(req));
	}
}

static void __init mask_only_grows(struct kunit *test)
{
	struct arm64_zero_pages pages = {};

	zero_page_grow(&pages, 1);
	KUNIT_EXPECT_EQ(test, pages.color_mask, 0);
	zero_page_grow(&pages, 4);
	KUNIT_EXPECT_EQ(test, pages.color_mask, 3);
	zero_page_grow(&pages, 2);
	KUNIT_EXPECT_EQ(test, pages.color_mask, 3);
	zero_page_grow(&pages, 1);
	KUNIT_EXPECT_EQ(test, pages.color_mask, 3);
	zero_page_grow(&pages, 16);
	KUNIT_EXPECT_EQ(test, pages.color_mask, 15);
}

static void __init fixed_count_is_obeyed(struct kunit *test)
{
	const struct zero_page_request req = {
		.policy = ZERO_PAGE_FIXED,
		.colors = ZERO_PAGES_MAX,
	};
	struct zero_page_choice choice = {};

	zero_page_choose(&req, &choice);
	KUNIT_EXPECT_EQ(test, choice.colors, ZERO_PAGES_MAX);
	KUNIT_EXPECT_EQ(test, choice.way_size, 0);
	KUNIT_EXPECT_STREQ(test, choice.from, "parameter");
}

/* Whatever the machine's firmware says: what is chosen can be handed out. */
static void __init choice_is_within_reserve(struct kunit *test)
{
	for (enum zero_page_policy p = ZERO_PAGE_L1D; p <= ZERO_PAGE_L2; p++) {
		const struct zero_page_request req = { .policy = p };
		struct zero_page_choice choice = {};

		zero_page_choose(&req, &choice);
		KUNIT_EXPECT_TRUE(test, is_power_of_2(choice.colors));
		KUNIT_EXPECT_LE(test, choice.colors, ZERO_PAGES_MAX);
		KUNIT_EXPECT_LT(test, strlen(choice.why),
				sizeof(choice.why) - 1);
		if (choice.way_size)
			KUNIT_EXPECT_STREQ(test, choice.from,
					   acpi_disabled ? "DT" : "PPTT");
		else
			KUNIT_EXPECT_EQ(test, choice.colors, 1);
	}
}

static struct kunit_case __refdata sizing_cases[] = {
	KUNIT_CASE(way_size_of_geometry),
	KUNIT_CASE(colors_of_way),
	KUNIT_CASE(cache_of_level),
	KUNIT_CASE(request_understood),
	KUNIT_CASE(request_refused),
	KUNIT_CASE(mask_only_grows),
	KUNIT_CASE(fixed_count_is_obeyed),
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
	unsigned long colors = arm64_zero_pages.color_mask + 1;
	unsigned long page;

	for (page = 0; page < 2 * ZERO_PAGES_MAX; page++) {
		unsigned long addr = SZ_1G + page * PAGE_SIZE;
		unsigned long pfn = page_to_pfn(ZERO_PAGE(addr));

		KUNIT_EXPECT_EQ(test, pfn % colors, page % colors);
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
	KUNIT_EXPECT_TRUE(test, IS_ALIGNED(first, ZERO_PAGES_MAX));

	KUNIT_EXPECT_FALSE(test, is_zero_pfn(first - 1));
	for (pfn = first; pfn < first + ZERO_PAGES_MAX; pfn++)
		KUNIT_EXPECT_TRUE(test, is_zero_pfn(pfn));
	KUNIT_EXPECT_FALSE(test, is_zero_pfn(first + ZERO_PAGES_MAX));

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

	for (i = 0; i < ZERO_PAGES_SIZE; i += PAGE_SIZE) {
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
	KUNIT_EXPECT_LE(test, (unsigned long)empty_zero_page + ZERO_PAGES_SIZE,
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

MODULE_DESCRIPTION("KUnit tests of the colour zero pages");
MODULE_LICENSE("GPL");
