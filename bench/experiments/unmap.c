// SPDX-License-Identifier: GPL-2.0
/*
 * munmap(2) of memory: at once, in pieces, and a page here and there.
 */
#include <errno.h>
#include <sys/mman.h>

#include "operation.h"

static int64_t unmap_at_once(struct area *area)
{
	return munmap(area->memory.start, area->memory.size) ? -errno : 1;
}

/* Unmaps @bytes at the beginning of each stride. */
static int64_t unmap_parts(struct area *area, size_t bytes)
{
	const size_t stride = area_stride();

	for (size_t at = 0; at < area->memory.size; at += stride)
		if (munmap(area->memory.start + at, bytes))
			return -errno;
	return area->memory.size / stride;
}

static int64_t unmap_pieces(struct area *area)
{
	return unmap_parts(area, area_stride());
}

static int64_t unmap_holes(struct area *area)
{
	return unmap_parts(area, page_size());
}

static const struct operation operations[] = {
	{ "at-once", NULL, unmap_at_once },
	{ "pieces", NULL, unmap_pieces },
	{ "holes", NULL, unmap_holes },
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
	OPERATION_PARAM("at-once"),
	{ }
};

static const struct metric metrics[] = {
	OPERATIONS_METRIC,
	{ }
};

static const struct experiment unmap = {
	.name = "unmap",
	.summary = "munmap of memory: at once, in pieces, and a page here and there",
	.detail =
"Unmaps memory of a kind. at-once: with one call. pieces: 16 base pages\n"
"with each call, in order of address. holes: only the first page of each piece, so\n"
"that the rest stays. Both split huge pages.",
	.example = "--operation holes --memory 64k",
	.params = params,
	.metrics = metrics,
	.shared_params = area_param,
	.shared_metrics = area_metric,
	.measure = measure,
};

EXPERIMENT(unmap);
