// SPDX-License-Identifier: GPL-2.0
/*
 * The first touch of pages in an order of their addresses: what a kernel
 * that looks at the order gives, and what it gives in vain.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "arch.h"
#include "loops.h"
#include "memory.h"
#include "region.h"
#include "result.h"
#include "touch.h"

/* Pages: runs begin at random in slots of this size and never overlap. */
#define SLOT	64

/* What happens to a page besides its touch. */
enum extra {
	NOTHING,
	GIVEN_BACK,	/* before the touch, by MADV_DONTNEED */
	NEXT_READ,	/* the page above is read before the touch */
};

struct order {
	const char *name;
	/* Fills @list with the pages to touch, of @pages. Returns their number. */
	uint32_t (*arrange)(uint32_t *list, uint32_t pages, uint32_t number);
	uint32_t number;	/* for .arrange() */
	enum extra extra;
};

/* Knuth's MMIX generator: the same sequence on each machine */
static uint32_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return *state >> 33;
}

/* A permutation of the @pages first numbers, by Fisher and Yates */
static void shuffle(uint32_t *list, uint32_t pages, uint64_t *state)
{
	for (uint32_t i = pages - 1; i; i--) {
		const uint32_t j = next_random(state) % (i + 1), page = list[i];

		list[i] = list[j];
		list[j] = page;
	}
}

/*
 * Draws @pages of the permutation @list, with a probability that falls as 1 / rank:
 * the number of bits of the rank is uniform.
 */
static void draw(uint32_t *list, uint32_t pages, uint64_t *state)
{
	uint32_t *ranked = malloc(pages * sizeof(*ranked));
	uint32_t bits = 0;

	if (!ranked)
		abort();
	memcpy(ranked, list, pages * sizeof(*ranked));
	while (2u << bits <= pages)
		bits++;
	for (uint32_t i = 0; i < pages; i++) {
		const uint32_t base = 1u << next_random(state) % bits;

		list[i] = ranked[base - 1 + next_random(state) % base];
	}
	free(ranked);
}

static uint32_t upwards(uint32_t *list, uint32_t pages, uint32_t stride)
{
	for (uint32_t i = 0; i < pages / stride; i++)
		list[i] = i * stride;
	return pages / stride;
}

static uint32_t downwards(uint32_t *list, uint32_t pages, uint32_t stride)
{
	for (uint32_t i = 0; i < pages / stride; i++)
		list[i] = pages - 1 - i * stride;
	return pages / stride;
}

static uint32_t at_random(uint32_t *list, uint32_t pages, uint32_t stride)
{
	const uint32_t number = upwards(list, pages, stride);
	uint64_t state = 1;

	shuffle(list, number, &state);
	return number;
}

static uint32_t zipf(uint32_t *list, uint32_t pages, uint32_t stride)
{
	const uint32_t number = upwards(list, pages, stride);
	uint64_t state = 1;

	shuffle(list, number, &state);
	draw(list, number, &state);
	return number;
}

/* One run of @length pages in each slot; the slots come in random order. */
static uint32_t runs(uint32_t *list, uint32_t pages, uint32_t length)
{
	const uint32_t slots = pages / SLOT;
	uint32_t *starts = malloc(pages * sizeof(*starts)), number = 0;
	uint64_t state = 1;

	if (!starts)
		abort();
	upwards(starts, pages, SLOT);
	if (slots)
		shuffle(starts, slots, &state);
	for (uint32_t i = 0; i < slots; i++) {
		const uint32_t first = starts[i] + next_random(&state) % (SLOT - length);

		for (uint32_t j = 0; j < length; j++)
			list[number++] = first + j;
	}
	free(starts);
	return number;
}

/* The first 16th upwards; after each page, @others at random of the rest. */
static uint32_t beside(uint32_t *list, uint32_t pages, uint32_t others)
{
	const uint32_t stream = pages / 16, rest = pages - stream;
	uint32_t *table = malloc(pages * sizeof(*table)), number = 0, used = 0;
	uint64_t state = 1;

	if (!table)
		abort();
	upwards(table, rest, 1);
	shuffle(table, rest, &state);
	for (uint32_t i = 0; i < stream; i++) {
		list[number++] = i;
		for (uint32_t j = 0; j < others; j++)
			list[number++] = stream + table[used++];
	}
	free(table);
	return number;
}

/* From both ends to the middle, in turn. */
static uint32_t from_ends(uint32_t *list, uint32_t pages, uint32_t stride)
{
	uint32_t number = 0;

	for (uint32_t i = 0; i < pages / stride / 2; i++) {
		list[number++] = i * stride;
		list[number++] = pages - 1 - i * stride;
	}
	return number;
}

static uint32_t same(uint32_t *list, uint32_t pages, uint32_t stride)
{
	for (uint32_t i = 0; i < pages / stride; i++)
		list[i] = pages / 2;
	return pages / stride;
}

static const struct order orders[] = {
	{ "up", upwards, 1, NOTHING },
	{ "down", downwards, 1, NOTHING },
	{ "stride-2", upwards, 2, NOTHING },
	{ "stride-16", upwards, 16, NOTHING },
	{ "stride-17", upwards, 17, NOTHING },
	{ "random", at_random, 1, NOTHING },
	{ "zipf", zipf, 1, NOTHING },
	{ "runs-2", runs, 2, NOTHING },
	{ "runs-3", runs, 3, NOTHING },
	{ "runs-5", runs, 5, NOTHING },
	{ "runs-8", runs, 8, NOTHING },
	{ "runs-12", runs, 12, NOTHING },
	{ "beside-1", beside, 1, NOTHING },
	{ "beside-2", beside, 2, NOTHING },
	{ "beside-3", beside, 3, NOTHING },
	{ "up-down", from_ends, 1, NOTHING },
	{ "same", same, 16, GIVEN_BACK },
	{ "reader", upwards, 1, NEXT_READ },
};

static const char *order_name(size_t place)
{
	return place < ARRAY_SIZE(orders) ? orders[place].name : NULL;
}

static const struct order *find_order(const char *name)
{
	const struct order *order = orders;

	while (strcmp(order->name, name))
		order++;
	return order;
}

static int compare(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static uint32_t distinct(uint32_t *list, uint32_t number)
{
	uint32_t sum = 1;

	qsort(list, number, sizeof(*list), compare);
	for (uint32_t i = 1; i < number; i++)
		sum += list[i] != list[i - 1];
	return sum;
}

static enum status measure_memory(struct run *run, const struct touch *touch,
				  const struct memory *memory)
{
	const struct order *order = find_order(param_text(run, "order"));
	const size_t page = page_size();
	const uint32_t pages = memory->size / page;
	const char *end = memory->start + memory->size;
	uint32_t *list = malloc(pages * sizeof(*list)), number;
	int64_t resident;

	if (!list)
		return wrong(run, "no memory for a list of %u pages", pages);
	number = order->arrange(list, pages, order->number);
	region_begin(run, "touch-order");
	marker_begin();
	for (uint32_t i = 0; i < number; i++) {
		char *start = memory->start + list[i] * page, *next = start + page;

		if (order->extra == GIVEN_BACK)
			madvise(start, page, MADV_DONTNEED);
		if (order->extra == NEXT_READ && next < end)
			touch_load(next, next + page, page);
		touch->pages(start, next, page);
	}
	marker_end();
	region_end(run);
	region_report(run);

	resident = memory_smaps(memory->start, memory->size, "Rss");
	result_add(run, "touched_pages", distinct(list, number));
	if (resident < 0)
		result_absent(run, "resident_pages",
			      "no Rss in /proc/self/smaps (CONFIG_PROC_PAGE_MONITOR)");
	else
		result_add(run, "resident_pages", resident / page);
	free(list);
	return STATUS_OK;
}

static enum status measure(struct run *run)
{
	const struct touch *touch = touch_find(param_text(run, "by"));
	struct memory memory;
	enum status status;
	int error;

	status = memory_check_size(run, "size", page_size(), "page");
	if (status)
		return status;
	if (param_number(run, "size") < SLOT * page_size())
		return refuse(run, "--size %lu is too small for --order: give at least %zu",
			      param_number(run, "size"), SLOT * page_size());
	if (!touch->pages)
		return refuse(run,
			      "--by madvise has no order of its own: give an instruction, such as store");
	if (touch_unavailable(touch))
		return result_unavailable(run, "%s", touch_unavailable(touch));
	error = memory_map(&memory, param_number(run, "size"), MEMORY_ALIGN);
	if (error)
		return refuse(run, "--size %lu cannot be mapped (%s): give a smaller one",
			      param_number(run, "size"), strerror(-error));
	status = measure_memory(run, touch, &memory);
	memory_unmap(&memory);
	return status;
}

static const struct param params[] = {
	{
		.name = "by", .help = "what touches first",
		.type = PARAM_CHOICE, .choices = touch_writing, .def = "store",
	}, {
		.name = "order", .help = "of the pages",
		.type = PARAM_CHOICE, .choices = order_name, .def = "up",
	}, {
		.name = "size", .help = "bytes of memory",
		.type = PARAM_SIZE, .def = "67108864", .min = 4096,
	},
	{ }
};

static const struct metric metrics[] = {
	{ "touched_pages", "pages", "that were touched" },
	{ "resident_pages", "pages", "that are mapped in the end" },
	{ }
};

static const struct experiment touch_order = {
	.name = "touch-order",
	.summary = "first touch of pages in order, in runs, at random and beside others",
	.detail =
"Maps private anonymous memory, without advice, and touches its pages in the order\n"
"that --order names.\n"
"up, down, random: all of them. stride-N: each Nth. zipf: as many draws as there are\n"
"pages; the probability of a page falls as 1 / rank. runs-N: N pages upwards from a\n"
"random place in each 64 pages, which come in random order. beside-N: a 16th of the\n"
"pages upwards, and after each of them N others at random. up-down: upwards from\n"
"the first page and downwards from the last one, in turn. same: one page, which\n"
"MADV_DONTNEED gives back before each touch. reader: upwards, and the next page is\n"
"read before each touch.\n"
"Resident pages that were not touched are wasted. A page that is only read is not\n"
"resident: the zero page is behind it.",
	.example = "--by store --order runs-3 --size 64M",
	.params = params,
	.metrics = metrics,
	.measure = measure,
};

EXPERIMENT(touch_order);
