// SPDX-License-Identifier: GPL-2.0
/*
 * The first touch of pages in an order of their addresses: what a kernel
 * that looks at the order gives, and what it gives in vain.
 */
#include <stdlib.h>
#include <string.h>

#include "arch.h"
#include "memory.h"
#include "region.h"
#include "result.h"
#include "touch.h"

/* Beside each other so that --order's words are in the order of the cases. */
static const char * const orders[] = {
	"up", "down", "stride-2", "stride-16", "stride-17", "random", "zipf", NULL
};

static const uint32_t strides[] = { 1, 1, 2, 16, 17, 1, 1 };

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

/* Fills @list with the pages to touch, of @pages. Returns their number. */
static uint32_t arrange(uint32_t *list, uint32_t pages, const char *order)
{
	uint64_t state = 1;
	size_t which = 0;
	uint32_t number;

	while (strcmp(orders[which], order))
		which++;
	number = pages / strides[which];
	for (uint32_t i = 0; i < number; i++)
		list[i] = i * strides[which];
	if (!strcmp(order, "down"))
		for (uint32_t i = 0; i < number; i++)
			list[i] = number - 1 - i;
	if (!strcmp(order, "random") || !strcmp(order, "zipf"))
		shuffle(list, pages, &state);
	if (!strcmp(order, "zipf"))
		draw(list, pages, &state);
	return number;
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
	const size_t page = page_size();
	const uint32_t pages = memory->size / page;
	uint32_t *list = malloc(pages * sizeof(*list)), number;
	int64_t resident;

	if (!list)
		return wrong(run, "no memory for a list of %u pages", pages);
	number = arrange(list, pages, param_text(run, "order"));
	region_begin(run, "touch-order");
	marker_begin();
	for (uint32_t i = 0; i < number; i++) {
		char *start = memory->start + list[i] * page;

		touch->pages(start, start + page, page);
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
		.type = PARAM_CHOICE, .words = orders, .def = "up",
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
	.summary = "first touch of pages upwards, downwards, with strides and at random",
	.detail =
"Maps private anonymous memory, without advice, and touches its pages in the order\n"
"that --order names: all of them upwards, downwards or at random; each second, 16th or\n"
"17th; or, for zipf, as many draws as there are pages, in which the probability of\n"
"a page falls as 1 / rank. Pages that are resident and were not touched are what\n"
"the kernel mapped in vain.",
	.example = "--by store --order down --size 64M",
	.params = params,
	.metrics = metrics,
	.measure = measure,
};

EXPERIMENT(touch_order);
