// SPDX-License-Identifier: GPL-2.0
/*
 * What reads of zero pages evict from the cache.
 */
#include <string.h>

#include "arch.h"
#include "hugepage.h"
#include "region.h"
#include "result.h"
#include "thp.h"

#define LINE	64	/* bytes: no modelled CPU has shorter lines */

static noinline void scan_rounds(const char *set, const char *set_end,
				 const char *zero, const char *zero_end,
				 uint64_t stride, uint64_t rounds)
{
	for (; rounds; rounds--) {
		for (const char *at = set; at < set_end; at += LINE)
			load(at);
		for (const char *at = zero; at < zero_end; at += stride)
			load(at);
	}
}

static enum status measure_zero(struct run *run, const char *set,
				uint64_t set_size, const struct memory *zero)
{
	const char *zero_end = zero->start + zero->size;
	uint64_t stride = param_number(run, "stride");
	uint64_t rounds = param_number(run, "rounds");

	/* The first round faults everything in and fills the cache. */
	scan_rounds(set, set + set_size, zero->start, zero_end, stride, 1);
	region_begin(run, "zero-scan");
	marker_begin();
	scan_rounds(set, set + set_size, zero->start, zero_end, stride, rounds);
	marker_end();
	region_end(run);
	region_report(run);
	result_add(run, "set_reads", set_size / LINE * rounds);
	result_add(run, "zero_reads",
		   (zero->size + stride - 1) / stride * rounds);
	return STATUS_OK;
}

static enum status check_request(const struct run *run)
{
	uint64_t set_size = param_number(run, "working_set");
	uint64_t stride = param_number(run, "stride");

	if (set_size % LINE)
		return refuse(run, "--working_set %lu is not a multiple of %d bytes: give %lu",
			      set_size, LINE, set_size / LINE * LINE);
	if (stride % sizeof(uint32_t))
		return refuse(run, "--stride %lu is not a multiple of a read's %zu bytes: give %lu",
			      stride, sizeof(uint32_t),
			      stride / sizeof(uint32_t) * sizeof(uint32_t));
	return STATUS_OK;
}

static enum status measure(struct run *run)
{
	uint64_t set_size = param_number(run, "working_set");
	struct hugepages set = { };
	struct memory zero;
	enum status status;
	bool unavailable = false;
	int error;

	status = check_request(run);
	if (status)
		return status;
	if (set_size) {
		status = hugepages_get(run, &set, set_size, &unavailable);
		if (status || unavailable)
			return status;
	}
	error = memory_map(&zero, param_number(run, "zero_pages") * page_size(),
			   HUGEPAGE_BYTES);
	if (!error) {
		error = thp_advise(&zero, page_size());
		if (!error)
			status = measure_zero(run, set.start, set_size, &zero);
		memory_unmap(&zero);
	}
	if (set_size)
		hugepages_put(&set);
	if (error)
		return wrong(run, "mapping the zero pages: %s",
			     strerror(-error));
	return status;
}

static const struct param params[] = {
	{
		.name = "stride", .type = PARAM_SIZE, .def = "64", .min = 4,
		.max = HUGEPAGE_BYTES,
		.help = "bytes from one read of zeroes to the next (64: dense; 4096: by page)",
	}, {
		.name = "working_set", .type = PARAM_SIZE, .def = "0",
		.max = 64 * HUGEPAGE_BYTES,
		.help = "bytes of other memory read in each round; 0: none",
	}, {
		.name = "rounds", .type = PARAM_COUNT, .def = "100", .min = 1,
		.max = 1000000000,
		.help = "of reading the working set and the zeroes",
	}, {
		.name = "zero_pages", .type = PARAM_COUNT, .def = "128",
		.min = 1, .max = 1048576,
		.help = "pages of zeroes that a round reads",
	},
	HUGEPAGES_PARAM,
	{ }
};

static const struct metric metrics[] = {
	{ "set_reads", "reads", "loads from the working set in the region" },
	{ "zero_reads", "reads", "loads from zero pages in the region" },
	{ }
};

static const struct experiment zero_scan = {
	.name = "zero-scan",
	.summary = "zero pages read beside a working set: what they push out",
	.detail =
"Each round reads a working set, line by line, and then memory that was never\n"
"written, by stride. The working set lies in huge pages. The zero pages occupy as\n"
"much cache as they have colours: what that costs a set that just fits shows in\n"
"the misses, alone (working_set 0) and together.",
	.example = "--stride 64 --working_set 64K --rounds 100",
	.params = params,
	.metrics = metrics,
	.measure = measure,
};

EXPERIMENT(zero_scan);
