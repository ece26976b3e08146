// SPDX-License-Identifier: GPL-2.0
/*
 * mremap(2) of memory: moved, grown and shrunk.
 */
#include <errno.h>
#include <sys/mman.h>

#include "operation.h"

/* Twice the memory, and room to move a page further. */
static const char *get_place(struct area *area)
{
	return area_get_other(area, 2 * area->memory.size + page_size()) ?
	       "there is no room for a second mapping" : NULL;
}

/* Nothing lies behind the memory any more. */
static const char *free_behind(struct area *area)
{
	return munmap(area->memory.start + area->memory.size,
		      area->memory.size) ? "munmap failed" : NULL;
}

/* Moves @size bytes at @at, and makes @grown of them. */
static int64_t move_to(struct area *area, size_t at, size_t size, size_t grown,
		       char *to)
{
	return mremap(area->memory.start + at, size, grown,
		      MREMAP_MAYMOVE | MREMAP_FIXED, to) == MAP_FAILED ?
	       -errno : 1;
}

static int64_t move(struct area *area)
{
	const size_t size = area->memory.size;

	return move_to(area, 0, size, size, area->other.start);
}

static int64_t move_a_page_further(struct area *area)
{
	const size_t size = area->memory.size;

	return move_to(area, 0, size, size, area->other.start + page_size());
}

static const char *get_place_of_pieces(struct area *area)
{
	return area_is_hugetlb(area) ? "mremap moves whole pages of hugeTLB" :
				       get_place(area);
}

static int64_t move_pieces(struct area *area)
{
	const size_t stride = area_stride();

	for (size_t at = 0; at < area->memory.size; at += stride) {
		int64_t done = move_to(area, at, stride, stride,
				       area->other.start + at);

		if (done < 0)
			return done;
	}
	return area->memory.size / stride;
}

static int64_t move_and_grow(struct area *area)
{
	const size_t size = area->memory.size;

	return move_to(area, 0, size, 2 * size, area->other.start);
}

static int64_t resize(struct area *area, size_t size)
{
	return mremap(area->memory.start, area->memory.size, size, 0) ==
	       MAP_FAILED ? -errno : 1;
}

static int64_t grow(struct area *area)
{
	return resize(area, 2 * area->memory.size);
}

static int64_t shrink(struct area *area)
{
	return resize(area, page_size());
}

static const struct operation operations[] = {
	{ "moved", get_place, move },
	{ "moved-askew", get_place, move_a_page_further },
	{ "moved-pieces", get_place_of_pieces, move_pieces },
	{ "moved-grown", get_place, move_and_grow },
	{ "grown", free_behind, grow },
	{ "shrunk", NULL, shrink },
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
	OPERATION_PARAM("moved"),
	{ }
};

static const struct metric metrics[] = {
	OPERATIONS_METRIC,
	{ }
};

static const struct experiment remap = {
	.name = "remap",
	.summary = "mremap of memory: moved, grown and shrunk",
	.detail =
"moved: with one call to an address of the same alignment. moved-askew: a base\n"
"page further, so that no page table and no huge page moves as a whole.\n"
"moved-pieces: a call for each 16 base pages. moved-grown: to twice its size.\n"
"grown: the same where it is, for nothing lies behind it. shrunk: to a base page.",
	.example = "--operation moved-pieces --memory 64k",
	.params = params,
	.metrics = metrics,
	.shared_params = area_param,
	.shared_metrics = area_metric,
	.measure = measure,
};

EXPERIMENT(remap);
