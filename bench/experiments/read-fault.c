// SPDX-License-Identifier: GPL-2.0
/*
 * The first touch of anonymous memory by a load: zero pages, and nothing else.
 */
#include <string.h>

#include "arch.h"
#include "memory.h"
#include "region.h"
#include "thp.h"
#include "touch.h"

static enum status measure_memory(struct run *run, const struct memory *memory)
{
	const struct touch *touch = touch_find("load");
	size_t page = page_size();
	int64_t rss;

	/* The first call of the loop uses a page of the program. */
	touch->pages((char *)run, (char *)run + 1, page);
	region_begin(run, "read-fault");
	marker_begin();
	touch->pages(memory->start, memory->start + memory->size, page);
	marker_end();
	region_end(run);
	region_report(run);

	rss = memory_smaps(memory->start, memory->size, "Anonymous");
	if (rss > 0)
		return wrong(run, "%ld bytes were allocated, though nothing was written",
			     rss);
	return memory_check_contents(run, memory, 0);
}

static enum status measure(struct run *run)
{
	uint64_t size = param_number(run, "size");
	struct memory memory;
	enum status status;
	int error;

	status = memory_check_size(run, "size", page_size(), "page");
	if (status)
		return status;
	error = memory_map(&memory, size, MEMORY_ALIGN);
	if (error)
		return refuse(run, "--size %lu cannot be mapped (%s): give a smaller one",
			      size, strerror(-error));
	error = thp_advise(&memory, page_size());
	if (error) {
		status = wrong(run, "madvise: %s", strerror(-error));
	} else {
		region_timeline(run, memory.start, memory.size, false);
		status = measure_memory(run, &memory);
	}
	memory_unmap(&memory);
	return status;
}

static const struct param params[] = {
	{
		.name = "size", .help = "bytes of memory",
		.type = PARAM_SIZE, .def = "1073741824", .min = 4096,
	},
	TIMELINE_PARAM,
	{ }
};

static const struct metric metrics[] = {
	{ }
};

static const struct experiment read_fault = {
	.name = "read-fault",
	.summary = "first touch of anonymous memory by plain loads",
	.detail =
"Maps private anonymous memory in base pages and loads from each page once, in\n"
"order of address. The kernel puts in zero pages: nothing is allocated, which is\n"
"checked afterwards, as is that all reads as zero.",
	.example = "--size 1G",
	.params = params,
	.metrics = metrics,
	.measure = measure,
};

EXPERIMENT(read_fault);
