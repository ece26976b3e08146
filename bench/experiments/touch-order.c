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
#include "order.h"
#include "region.h"
#include "result.h"
#include "touch.h"

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
	const struct order *order = order_find(param_text(run, "order"));
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
	if (param_number(run, "size") < ORDER_SLOT * page_size())
		return refuse(run, "--size %lu is too small for --order: give at least %zu",
			      param_number(run, "size"), ORDER_SLOT * page_size());
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
