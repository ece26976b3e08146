// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that is swapped out by MADV_PAGEOUT, and comes back by faults.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>

#include "operation.h"
#include "swap.h"
#include "touch.h"

static const char *have_area(struct area *area)
{
	const char *why = swap_on(area->run, &area->swap);
	struct sysinfo info;

	if (!why && (sysinfo(&info) ||
		     info.freeswap * info.mem_unit < area->memory.size))
		why = "there is too little to swap to: name an area by --swap";
	return why;
}

static const char *swap_out(struct area *area)
{
	const char *why = have_area(area);

	return why ? why : swap_out_memory(&area->memory);
}

static int64_t page_out(struct area *area)
{
	return madvise(area->memory.start, area->memory.size, MADV_PAGEOUT) ?
	       -errno : 1;
}

static int64_t touch_all(struct area *area, const char *name)
{
	const size_t page = page_size();

	touch_find(name)->pages(area->memory.start,
				area->memory.start + area->memory.size, page);
	return area->memory.size / page;
}

static int64_t load(struct area *area)
{
	return touch_all(area, "load");
}

static int64_t store(struct area *area)
{
	return touch_all(area, "store");
}

static const struct operation operations[] = {
	{ "out", have_area, page_out },
	{ "in", swap_out, load },
	{ "in-stores", swap_out, store },
	{ }
};

static const char *operation_name(size_t place)
{
	return operations[place].name;
}

static enum status measure(struct run *run)
{
	return operation_measure(run, operations, NULL);
}

static const struct param params[] = {
	OPERATION_PARAM("out"),
	SWAP_PARAM,
	{ }
};

static const struct metric metrics[] = {
	OPERATIONS_METRIC,
	{ }
};

static const struct experiment swapping = {
	.name = "swapping",
	.summary = "memory that is swapped out, and comes back by faults",
	.detail =
"out: one call of madvise with MADV_PAGEOUT for all memory. in and in-stores: loads\n"
"from, or stores to, each base page of memory that was swapped out so. resident_bytes\n"
"is what out left.",
	.example = "--operation in --memory 64k --size 2M",
	.params = params,
	.metrics = metrics,
	.shared_params = area_param,
	.shared_metrics = area_metric,
	.measure = measure,
};

EXPERIMENT(swapping);
