// SPDX-License-Identifier: GPL-2.0
#include <stdlib.h>

#include "arch.h"
#include "conflict.h"
#include "memory.h"
#include "region.h"
#include "result.h"

static const struct param params[] = {
	{
		.name = "hot_color", .type = PARAM_COUNT, .def = "0",
		.help = "colour of the hot lines in a way of that cache",
	}, {
		.name = "level", .help = "the cache whose sets are filled",
		.type = PARAM_CHOICE, .choices = geometry_level, .def = "l2",
	}, {
		.name = "ways", .type = PARAM_COUNT, .min = 1, .max = 1024,
		.help = "of that cache (default: as the kernel tells)",
	}, {
		.name = "way_size", .type = PARAM_SIZE, .min = 64,
		.max = HUGEPAGE_BYTES,
		.help = "bytes of one way (default: as the kernel tells)",
	}, {
		.name = "rounds", .type = PARAM_COUNT, .def = "100000",
		.min = 1, .max = 1000000000,
		.help = "of reading the hot lines and one page",
	}, {
		.name = "zero_pages", .type = PARAM_COUNT, .def = "512",
		.min = 1, .max = 1048576,
		.help = "pages of zeroes, read in turn",
	},
	HUGEPAGES_PARAM,
};

static const struct metric metrics[] = {
	{ "reads", "reads", "loads of the experiment in the region" },
	{ "hot_lines_checked", "lines", "whose page frame has the wanted colour" },
	{ "zero_frame", "frame", "page frame number of the first zero page" },
	{ "zero_frames", "frames", "different page frames behind the zero pages" },
	{ "zero_color", "colour", "of the first zero page in a way of that cache" },
};

const struct param *conflict_param(size_t place)
{
	return place < ARRAY_SIZE(params) ? &params[place] : NULL;
}

const struct metric *conflict_metric(size_t place)
{
	return place < ARRAY_SIZE(metrics) ? &metrics[place] : NULL;
}

static uint64_t colors(const struct conflict *conflict)
{
	uint64_t colors = conflict->geometry.way_size / page_size();

	return colors ? colors : 1;
}

static enum status check_hot_lines(struct run *run,
				   const struct conflict *conflict)
{
	const struct geometry *geometry = &conflict->geometry;

	for (uint64_t i = 0; i < geometry->ways; i++) {
		const char *line = conflict->first_hot + i * geometry->way_size;
		int64_t frame = memory_frame(line);

		if (frame < 0) {
			result_absent(run, "hot_lines_checked", MEMORY_FRAME_HIDDEN);
			return STATUS_OK;
		}
		if (frame % colors(conflict) != conflict->hot_color)
			return wrong(run, "hot line %lu has colour %lu, not %lu",
				     i, frame % colors(conflict),
				     conflict->hot_color);
	}
	result_add(run, "hot_lines_checked", geometry->ways);
	return STATUS_OK;
}

enum status conflict_prepare(struct run *run, struct conflict *conflict,
			     bool *unavailable)
{
	const struct geometry *geometry = &conflict->geometry;
	enum status status;

	status = geometry_of_run(run, &conflict->geometry);
	if (status)
		return status;
	conflict->hot_color = param_number(run, "hot_color");
	if (conflict->hot_color >= colors(conflict))
		return refuse(run,
			      "--hot_color %lu: a way of %lu bytes has %lu colours: give at most %lu",
			      conflict->hot_color, geometry->way_size,
			      colors(conflict), colors(conflict) - 1);

	/*
	 * A huge page is aligned to its size and a way divides it, so the
	 * offset in the huge page gives the colour.
	 */
	status = hugepages_get(run, &conflict->hot,
			       geometry->ways * geometry->way_size,
			       unavailable);
	if (status || *unavailable)
		return status;
	conflict->first_hot = conflict->hot.start +
			      conflict->hot_color * page_size();
	return STATUS_OK;
}

static noinline void conflict_rounds(const char *hot, const char *hot_end,
				     uint64_t way_size, const char *zero,
				     const char *zero_end, uint64_t page,
				     uint64_t rounds)
{
	const char *next = zero;

	for (; rounds; rounds--) {
		for (const char *line = hot; line < hot_end; line += way_size)
			load(line);
		load(next);
		next += page;
		if (next == zero_end)
			next = zero;
	}
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void report_zero_frames(struct run *run,
			       const struct conflict *conflict,
			       const char *zero, size_t pages)
{
	int64_t *frames = calloc(pages, sizeof(*frames));
	size_t different = 0;
	int64_t first;

	for (size_t i = 0; frames && i < pages; i++)
		frames[i] = memory_frame(zero + i * page_size());
	if (!frames || frames[0] < 0) {
		result_absent(run, "zero_frame", MEMORY_FRAME_HIDDEN);
		result_absent(run, "zero_frames", MEMORY_FRAME_HIDDEN);
		result_absent(run, "zero_color", MEMORY_FRAME_HIDDEN);
		free(frames);
		return;
	}
	first = frames[0];
	qsort(frames, pages, sizeof(*frames), by_value);
	for (size_t i = 0; i < pages; i++)
		different += !i || frames[i] != frames[i - 1];
	result_add(run, "zero_frame", first);
	result_add(run, "zero_frames", different);
	result_add(run, "zero_color", first % colors(conflict));
	free(frames);
}

enum status conflict_measure(struct run *run, struct conflict *conflict,
			     const char *zero, size_t pages)
{
	const struct geometry *geometry = &conflict->geometry;
	const char *hot = conflict->first_hot;
	const char *hot_end = hot + geometry->ways * geometry->way_size;
	const char *zero_end = zero + pages * page_size();
	uint64_t rounds = param_number(run, "rounds");
	uint64_t way_size = geometry->way_size, page = page_size();

	/* All pages are faulted in, and the code is, before the region. */
	conflict_rounds(hot, hot_end, way_size, zero, zero_end, page, pages);
	region_begin(run, run->experiment->name);
	marker_begin();
	conflict_rounds(hot, hot_end, way_size, zero, zero_end, page, rounds);
	marker_end();
	region_end(run);
	region_report(run);
	result_add(run, "reads", rounds * (geometry->ways + 1));
	report_zero_frames(run, conflict, zero, pages);
	return check_hot_lines(run, conflict);
}

void conflict_finish(struct conflict *conflict)
{
	hugepages_put(&conflict->hot);
}
