// SPDX-License-Identifier: GPL-2.0
/* KUnit tests of streams: which writes continue them, and what they are given */

#include <kunit/test.h>
#include <linux/prandom.h>

#define LARGEST	4
#define START	BIT(20)	/* a page number on which a folio of any order begins */
#define STREAMS	((int)ARRAY_SIZE(((struct fault_ahead *)0)->streams))

/* A write fault at @page where all pages are missing. Returns the pages given. */
static int fault(struct fault_ahead *ahead, unsigned long page)
{
	const unsigned long addr = page * PAGE_SIZE;
	unsigned long *stream = find_stream(ahead, addr);
	int order;

	if (!stream)
		return 0;
	order = affordable_order(*stream, ahead->credit, addr, LARGEST);
	if (order < LEAST_ORDER)
		order = 0;
	go_on(ahead, stream, addr, order);

	return (1 << order) - 1;
}

/* Writes @pages pages in order, @step is 1 or -1. Returns the number of faults. */
static int write_in_order(struct fault_ahead *ahead, unsigned long page, int step, int pages)
{
	int faults = 0;

	while (pages > 0) {
		const int given = fault(ahead, page);

		faults++;
		pages -= given + 1;
		page += step * (given + 1);
	}

	return faults;
}

/* One fault for five pages, but for the beginning */
static void upwards(struct kunit *test)
{
	struct fault_ahead ahead = {};

	KUNIT_EXPECT_LE(test, write_in_order(&ahead, START, 1, 1000), 1000 / 5 + 4);
}

static void downwards(struct kunit *test)
{
	struct fault_ahead ahead = {};

	KUNIT_EXPECT_LE(test, write_in_order(&ahead, START - 1, -1, 1000), 1000 / 5 + 4);
}

/* A folio begins or ends where the write is, so none is given where none fits */
static void aligned(struct kunit *test)
{
	struct fault_ahead ahead = {};
	unsigned long up = START + 1, down = START;

	for (int i = 0; i < 1000; i++) {
		int given = fault(&ahead, up);

		KUNIT_EXPECT_TRUE(test, IS_ALIGNED(up, given + 1));
		up += given + 1;
		given = fault(&ahead, down);
		KUNIT_EXPECT_TRUE(test, IS_ALIGNED(down + 1, given + 1));
		down -= given + 1;
	}
}

static void three_streams_at_once(struct kunit *test)
{
	struct fault_ahead ahead = {};
	unsigned long page[STREAMS];
	int faults = 0, given = 0;

	for (int i = 0; i < STREAMS; i++)
		page[i] = START * (i + 1);
	for (int i = 0; i < 1000; i++) {
		unsigned long *next = &page[i % STREAMS];
		const int ahead_of_it = fault(&ahead, *next);

		*next += ahead_of_it + 1;
		given += ahead_of_it;
		faults++;
	}
	KUNIT_EXPECT_GE(test, given, 4 * (faults - 4 * STREAMS));
}

static void out_of_order_gives_nothing(struct kunit *test)
{
	struct fault_ahead ahead = {};

	for (unsigned long i = 0; i < 1000; i++)
		KUNIT_EXPECT_EQ(test, fault(&ahead, START + 2 * i), 0);
}

/* Three pages of one stream leave credit, with which another gets eight pages at once */
static void credit_is_of_the_thread(struct kunit *test)
{
	struct fault_ahead ahead = {};

	KUNIT_EXPECT_EQ(test, write_in_order(&ahead, START + 1, 1, 3), 3);
	KUNIT_EXPECT_EQ(test, write_in_order(&ahead, 2 * START + 15, 1, 9), 2);
}

/* Pages where no folio fits earn credit for ever, and leave so much */
static void credit_ends(struct kunit *test)
{
	struct fault_ahead ahead = {};

	for (int i = 0; i < 1000; i++)
		write_in_order(&ahead, START + 16 * i + 1, 1, 3);
	KUNIT_EXPECT_EQ(test, ahead.credit, MOST_CREDIT);
}

/* As after MADV_DONTNEED: no credit, and so four pages for the page that follows */
static void the_same_page_earns_nothing(struct kunit *test)
{
	struct fault_ahead ahead = {};

	for (int i = 0; i < 1000; i++)
		KUNIT_EXPECT_EQ(test, fault(&ahead, START + 15), 0);
	KUNIT_EXPECT_EQ(test, fault(&ahead, START + 16), 3);
}

/*
 * One that knows this file: whatever it touches next, among them the same page,
 * the pages beside an end, those beyond what it was given, and any other; each of
 * them missing again if it likes.
 */
static void the_bound_holds(struct kunit *test)
{
	struct fault_ahead ahead = {};
	struct rnd_state random;
	long in_order = 0, given = 0;

	prandom_seed_state(&random, 1);
	for (int i = 0; i < 100000; i++) {
		const u32 choice = prandom_u32_state(&random);
		/* The page behind an end */
		unsigned long page = ahead.streams[choice % STREAMS] >> PAGE_SHIFT;
		bool beside = false;

		/* Mostly upwards, to the first page that it was not given */
		if (!(choice & 0x700))
			page += (long)(choice >> 11) % 5 - 3;
		if (choice >> 24 == 0)
			page = START + (choice & 0xffff);
		for (int j = 0; j < STREAMS; j++) {
			const unsigned long behind = ahead.streams[j] >> PAGE_SHIFT;

			beside |= page == behind || page == behind - 2;
		}
		in_order += beside;
		given += fault(&ahead, page);
		if (given > PAGES_EARNED * in_order) {
			KUNIT_FAIL(test, "%ld pages for %ld in order", given, in_order);
			return;
		}
	}
	/* Less would be no adversary. */
	KUNIT_EXPECT_GE(test, given, in_order);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(upwards),
	KUNIT_CASE(downwards),
	KUNIT_CASE(aligned),
	KUNIT_CASE(three_streams_at_once),
	KUNIT_CASE(out_of_order_gives_nothing),
	KUNIT_CASE(credit_is_of_the_thread),
	KUNIT_CASE(credit_ends),
	KUNIT_CASE(the_same_page_earns_nothing),
	KUNIT_CASE(the_bound_holds),
	{}
};

static struct kunit_suite suite = {
	.name = "fault_ahead",
	.test_cases = cases,
};

kunit_test_suite(suite);
