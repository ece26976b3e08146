// SPDX-License-Identifier: GPL-2.0
/* KUnit tests of what is learned: reads and writes in, pages out */

#include <kunit/test.h>
#include <linux/write_intent_learn.h>

#define PC	0x400000UL
#define PAGES	1000UL
/* The first address that no test has read */
#define FRESH	(PAGES * PAGE_SIZE)

/* Returns whether the read gets a page of its own. */
static bool read_fault(struct write_intent_memory *memory, unsigned long pc,
		       unsigned long address, bool huge)
{
	return write_intent_known(memory, pc, address) && write_intent_spend(memory, huge);
}

/* Returns whether the read of the update got a page; else the write teaches. */
static bool update(struct write_intent_memory *memory, unsigned long pc,
		   unsigned long address)
{
	if (read_fault(memory, pc, address, false))
		return true;
	write_intent_lesson(memory, address);

	return false;
}

/* 1, 3, 7, 15, 31, 63 and then always 63 pages after each lesson */
static void an_update_is_learned(struct kunit *test)
{
	struct write_intent_memory memory = {};
	unsigned long next = 0, grant = 0;

	for (unsigned long i = 0; i < PAGES; i++) {
		KUNIT_EXPECT_EQ_MSG(test, update(&memory, PC, i * PAGE_SIZE), i != next,
				    "page %lu", i);
		if (i == next) {
			grant = min(2 * grant + 1, WRITE_INTENT_CREDIT);
			next += grant + 1;
		}
	}
}

static void a_read_alone_gets_no_page(struct kunit *test)
{
	struct write_intent_memory memory = {};

	for (unsigned long i = 0; i < PAGES; i++)
		KUNIT_EXPECT_FALSE(test, read_fault(&memory, PC, i * PAGE_SIZE, false));
}

static void a_write_elsewhere_teaches_nothing(struct kunit *test)
{
	struct write_intent_memory memory = {};

	for (unsigned long i = 0; i < PAGES; i++) {
		KUNIT_EXPECT_FALSE(test, read_fault(&memory, PC, i * PAGE_SIZE, false));
		write_intent_lesson(&memory, FRESH + i * PAGE_SIZE);
	}
}

/* One page in vain for each of the few that are written */
static void an_instruction_that_mostly_reads_gets_one_page(struct kunit *test)
{
	struct write_intent_memory memory = {};
	unsigned long lessons = 0, vain = 0;

	for (unsigned long i = 0; i < PAGES; i++) {
		if (read_fault(&memory, PC, i * PAGE_SIZE, false)) {
			vain++;
		} else if (i % 10 == 9) {
			write_intent_lesson(&memory, i * PAGE_SIZE);
			lessons++;
		}
	}
	KUNIT_EXPECT_EQ(test, lessons, PAGES / 10);
	KUNIT_EXPECT_EQ(test, vain, lessons - 1);	/* the last page is a lesson */
}

/* Whoever knows the period writes the probes alone. */
static void a_lesson_pays_for_no_more_than_it_says(struct kunit *test)
{
	struct write_intent_memory memory = {};
	unsigned long lessons = 0, vain = 0;

	for (unsigned long i = 0; i < PAGES; i++) {
		if (update(&memory, PC, i * PAGE_SIZE))
			vain++;
		else
			lessons++;
		KUNIT_EXPECT_LE(test, vain, lessons * WRITE_INTENT_CREDIT);
	}
}

static void a_huge_page_takes_all_credit(struct kunit *test)
{
	struct write_intent_memory memory = {};
	unsigned long i;

	for (i = 0; i < 3; i++)
		update(&memory, PC, i * PAGE_SIZE);
	KUNIT_ASSERT_GT(test, memory.known[write_intent_slot(PC)].credit, 1);
	KUNIT_EXPECT_TRUE(test, read_fault(&memory, PC, i++ * PAGE_SIZE, true));
	KUNIT_EXPECT_FALSE(test, read_fault(&memory, PC, i++ * PAGE_SIZE, true));
	KUNIT_EXPECT_FALSE(test, read_fault(&memory, PC, i++ * PAGE_SIZE, false));
}

/* Neither has the other's credit. */
static void instructions_of_one_slot_displace_each_other(struct kunit *test)
{
	const unsigned long other = PC + 4 * WRITE_INTENT_SLOTS;
	struct write_intent_memory memory = {};

	KUNIT_ASSERT_EQ(test, write_intent_slot(PC), write_intent_slot(other));
	for (unsigned long i = 0; i < PAGES; i++) {
		KUNIT_EXPECT_FALSE(test, update(&memory, i % 2 ? PC : other, i * PAGE_SIZE));
		KUNIT_EXPECT_EQ(test, memory.known[write_intent_slot(PC)].credit, 1);
	}
}

static struct kunit_case write_intent_learn_cases[] = {
	KUNIT_CASE(an_update_is_learned),
	KUNIT_CASE(a_read_alone_gets_no_page),
	KUNIT_CASE(a_write_elsewhere_teaches_nothing),
	KUNIT_CASE(an_instruction_that_mostly_reads_gets_one_page),
	KUNIT_CASE(a_lesson_pays_for_no_more_than_it_says),
	KUNIT_CASE(a_huge_page_takes_all_credit),
	KUNIT_CASE(instructions_of_one_slot_displace_each_other),
	{}
};

static struct kunit_suite write_intent_learn_suite = {
	.name = "write_intent_learn",
	.test_cases = write_intent_learn_cases,
};

kunit_test_suite(write_intent_learn_suite);

MODULE_DESCRIPTION("KUnit tests of write intent that is learned");
MODULE_LICENSE("GPL");
