// SPDX-License-Identifier: GPL-2.0
/*
 * How many lines of one cache set can be read repeatedly before each read
 * misses: the experiment of the first posting.
 */
#include <string.h>

#include "arch.h"
#include "hugepage.h"
#include "region.h"
#include "result.h"

#define SPAN_MAX	(32 * HUGEPAGE_BYTES)	/* bytes that the reads span */

static const char * const load_kinds[] = { "independent", "dependent", NULL };

/* As in the posting: a CPU may have all misses of a round in flight. */
static noinline void read_independent(const char *start, uint64_t stride,
				      uint64_t n, uint64_t rounds)
{
	const char *end = start + n * stride;

	for (; rounds; rounds--)
		for (const char *at = start; at < end; at += stride)
			load(at);
}

/*
 * Each address depends on the last read, whose value (zero) is added, also from
 * one round to the next. So the time includes the latency of every read.
 */
static noinline void read_dependent(const char *start, uint64_t stride,
				    uint64_t n, uint64_t rounds)
{
	const char *end = start + n * stride;
	uint64_t last = 0;

	for (; rounds; rounds--) {
		for (const char *at = start + last; at < end; ) {
			last = load(at);
			at += stride + last;
		}
	}
}

static enum status check_span(const struct run *run, uint64_t n,
			      uint64_t stride)
{
	if (stride % sizeof(uint32_t))
		return refuse(run, "--stride %lu is not a multiple of a read's %zu bytes: give %lu",
			      stride, sizeof(uint32_t),
			      stride / sizeof(uint32_t) * sizeof(uint32_t));
	if (n > SPAN_MAX / stride)
		return refuse(run,
			      "--n %lu, by %lu bytes, is more than %lu bytes: give at most %lu",
			      n, stride, SPAN_MAX, SPAN_MAX / stride);
	return STATUS_OK;
}

static enum status measure(struct run *run)
{
	uint64_t n = param_number(run, "n"), rounds = param_number(run, "rounds");
	uint64_t stride = param_number(run, "stride");
	void (*reads)(const char *start, uint64_t stride, uint64_t n,
		      uint64_t rounds);
	struct hugepages pages;
	enum status status;
	bool unavailable;

	status = check_span(run, n, stride);
	if (status)
		return status;
	status = hugepages_get(run, &pages, n * stride, &unavailable);
	if (status || unavailable)
		return status;

	reads = strcmp(param_text(run, "loads"), "dependent") ?
		read_independent : read_dependent;
	reads(pages.start, stride, n, 1);	/* its code, and the TLB */
	region_begin(run, "set-conflict");
	marker_begin();
	reads(pages.start, stride, n, rounds);
	marker_end();
	region_end(run);
	region_report(run);
	result_add(run, "reads", n * rounds);
	hugepages_put(&pages);
	return STATUS_OK;
}

static const struct param params[] = {
	{
		.name = "n", .help = "places that are read in a round",
		.type = PARAM_COUNT, .def = "8", .min = 1, .max = 1048576,
	}, {
		.name = "rounds", .help = "over all places",
		.type = PARAM_COUNT, .def = "100000", .min = 1,
		.max = 1000000000,
	}, {
		.name = "stride", .type = PARAM_SIZE, .def = "4096", .min = 4,
		.max = HUGEPAGE_BYTES,
		.help = "bytes between the places (a way's size keeps them in one set)",
	}, {
		.name = "loads", .type = PARAM_CHOICE, .words = load_kinds,
		.def = "independent",
		.help = "whether a read waits for the one before",
	},
	HUGEPAGES_PARAM,
	{ }
};

static const struct metric metrics[] = {
	{ "reads", "reads", "loads of the experiment in the region" },
	{ }
};

static const struct experiment set_conflict = {
	.name = "set-conflict",
	.summary = "reads of more and more lines of one cache set",
	.detail =
"Reads four bytes at the same offset of n places in huge pages, round after\n"
"round. The places lie stride bytes apart: by 4096 as in the postings, whose\n"
"machine has ways of 4 KiB. As long as n is no more than the ways every read\n"
"hits; with one more every read misses (by LRU).",
	.example = "--n 9 --stride 4096 --rounds 1000000",
	.params = params,
	.metrics = metrics,
	.measure = measure,
};

EXPERIMENT(set_conflict);
