// SPDX-License-Identifier: GPL-2.0
/* KUnit tests of streams: which first writes continue them, and which folios they get */

#include <kunit/test.h>
#include <linux/bitmap.h>
#include "fault_ahead.h"

#define PAGES	1024
#define START	BIT(18)	/* the page number of the first one, where a folio of any order begins */
#define STREAMS	((int)ARRAY_SIZE(((struct task_struct *)0)->fault_streams))

struct area {
	unsigned long streams[STREAMS];
	unsigned long allowed;		/* orders */
	DECLARE_BITMAP(present, PAGES);
};

static struct area *new_area(struct kunit *test, unsigned long allowed)
{
	struct area *area = kunit_kzalloc(test, sizeof(*area), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, area);
	area->allowed = allowed;

	return area;
}

/* A first write to @page, as alloc_anon_folio() handles it. Returns the pages that it gets. */
static int fault(struct area *area, unsigned long page)
{
	const unsigned long addr = (START + page) * PAGE_SIZE;
	const unsigned long orders = continue_stream(area->streams, addr) & area->allowed;
	int order;

	for (order = 9; order; order--) {
		const unsigned long first = round_down(page, 1UL << order);

		if (orders & BIT(order) &&
		    find_next_bit(area->present, PAGES, first) >= first + (1UL << order)) {
			stream_got_folio(area->streams, addr, (START + first) * PAGE_SIZE,
					 1UL << order);
			bitmap_set(area->present, first, 1 << order);
			return 1 << order;
		}
	}
	set_bit(page, area->present);

	return 1;
}

/* Writes @pages pages one after the other, where they are missing. Returns the faults. */
static int write_in_order(struct area *area, unsigned long page, int step, int pages)
{
	int faults = 0;

	for (; pages; pages--, page += step) {
		if (test_bit(page, area->present))
			continue;
		fault(area, page);
		faults++;
	}

	return faults;
}

static int present(const struct area *area)
{
	return bitmap_weight(area->present, PAGES);
}

static void ramp(struct kunit *test)
{
	static const int upwards[] = { 1, 1, 1, 1, 4, 8, 16, 16, 16 };
	struct area *area = new_area(test, GENMASK(4, 2));
	unsigned long page = 0;

	for (int i = 0; i < ARRAY_SIZE(upwards); i++) {
		KUNIT_EXPECT_EQ(test, fault(area, page), upwards[i]);
		page += upwards[i];
	}
}

static void long_streams(struct kunit *test)
{
	struct area *up = new_area(test, GENMASK(4, 2)), *down = new_area(test, GENMASK(4, 2));

	KUNIT_EXPECT_EQ(test, write_in_order(up, 0, 1, PAGES), PAGES / 16 + 5);
	KUNIT_EXPECT_EQ(test, write_in_order(down, PAGES - 1, -1, PAGES), PAGES / 16 + 5);
	KUNIT_EXPECT_EQ(test, present(up), PAGES);
	KUNIT_EXPECT_EQ(test, present(down), PAGES);
}

/* Wherever they begin, and in either direction */
static void short_runs_waste_nothing(struct kunit *test)
{
	for (int run = 1; run <= 3; run++) {
		struct area *area = new_area(test, GENMASK(4, 2));
		int runs = 0;

		for (unsigned long page = 0; page + run < PAGES; page += 17, runs++) {
			if (runs % 2)
				write_in_order(area, page, 1, run);
			else
				write_in_order(area, page + run - 1, -1, run);
		}
		KUNIT_EXPECT_EQ(test, present(area), runs * run);
	}
}

static void every_other_page(struct kunit *test)
{
	struct area *area = new_area(test, GENMASK(4, 2));

	KUNIT_EXPECT_EQ(test, write_in_order(area, 0, 2, PAGES / 2), PAGES / 2);
	KUNIT_EXPECT_EQ(test, present(area), PAGES / 2);
}

/* The limit of the rule: what lies between such writes counts as written */
static void first_page_of_each_folio(struct kunit *test)
{
	struct area *area = new_area(test, BIT(2));

	write_in_order(area, 0, 1, 5);
	KUNIT_EXPECT_EQ(test, write_in_order(area, 8, 4, PAGES / 4 - 2), PAGES / 4 - 2);
	KUNIT_EXPECT_EQ(test, present(area), PAGES);
}

/* They begin at once, beside one that has ended, and soon all of them go on */
static void three_streams_at_once(struct kunit *test)
{
	struct area *area = new_area(test, GENMASK(4, 2));
	int faults = 0;

	write_in_order(area, 0, 1, 256);
	for (int page = 256; page < 512; page++) {
		for (int i = 0; i < STREAMS; i++)
			faults += write_in_order(area, page + 256 * i, 1, 1);
	}
	KUNIT_EXPECT_LT(test, faults, STREAMS * (256 / 16 + 20));
}

/* A stream goes on beside faults in no order, which fall between any two of its pages */
static void beside_faults_in_no_order(struct kunit *test)
{
	struct area *area = new_area(test, GENMASK(4, 2));
	unsigned long other = 0;
	int faults = 0;

	write_in_order(area, 0, 1, 2);
	for (unsigned long page = 2; page < 256; page++) {
		faults += write_in_order(area, page, 1, 1);
		for (int i = 0; i < 8; i++)
			fault(area, 512 + (other += 74) % 512);
	}
	KUNIT_EXPECT_LT(test, faults, 256 / 16 + 5);
}

/* As after MADV_DONTNEED */
static void the_same_page_again(struct kunit *test)
{
	struct area *area = new_area(test, GENMASK(4, 2));

	for (int i = 0; i < 100; i++) {
		KUNIT_EXPECT_EQ(test, fault(area, 3), 1);
		clear_bit(3, area->present);
	}
}

/* A size that is always used counts, and is where a stream of larger ones begins */
static void sizes_that_are_always_used(struct kunit *test)
{
	unsigned long streams[STREAMS] = {};

	KUNIT_EXPECT_EQ(test, continue_stream(streams, START * PAGE_SIZE), 0);
	stream_got_folio(streams, START * PAGE_SIZE, START * PAGE_SIZE, 8);
	KUNIT_EXPECT_EQ(test, continue_stream(streams, (START + 8) * PAGE_SIZE), GENMASK(3, 0));
	KUNIT_EXPECT_EQ(test, STREAM_PAGES(streams[0]), 9);
}

static void long_streams_are_counted_no_further(struct kunit *test)
{
	unsigned long streams[STREAMS] = {};

	for (unsigned long page = START; page < START + 2 * HPAGE_PMD_NR; page++) {
		continue_stream(streams, page * PAGE_SIZE);
		if (page != START)
			KUNIT_ASSERT_EQ(test, STREAM_END(streams[0]), (page + 1) * PAGE_SIZE);
	}
	KUNIT_EXPECT_EQ(test, STREAM_PAGES(streams[0]), STREAM_PAGES_MAX);
}

/* A new task has no stream, and its first pages may be those of address 0 */
static void first_pages_of_memory(struct kunit *test)
{
	unsigned long streams[STREAMS] = {};

	for (unsigned long page = 0; page < 3; page++)
		KUNIT_EXPECT_LT(test, continue_stream(streams, page * PAGE_SIZE), BIT(2));
}

static struct kunit_case cases[] = {
	KUNIT_CASE(ramp),
	KUNIT_CASE(long_streams),
	KUNIT_CASE(short_runs_waste_nothing),
	KUNIT_CASE(every_other_page),
	KUNIT_CASE(first_page_of_each_folio),
	KUNIT_CASE(three_streams_at_once),
	KUNIT_CASE(beside_faults_in_no_order),
	KUNIT_CASE(the_same_page_again),
	KUNIT_CASE(sizes_that_are_always_used),
	KUNIT_CASE(long_streams_are_counted_no_further),
	KUNIT_CASE(first_pages_of_memory),
	{}
};

static struct kunit_suite suite = {
	.name = "fault_ahead",
	.test_cases = cases,
};

kunit_test_suite(suite);
