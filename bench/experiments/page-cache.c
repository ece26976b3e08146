// SPDX-License-Identifier: GPL-2.0
/*
 * Pages of a file that are cached: read(2) and write(2) of them, and the faults
 * that map them, by the size of folio.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "operation.h"
#include "touch.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ	22	/* Linux 5.14 */
#endif

#define NOT_CACHED	"such memory is no file's: give shmem or file as --memory"

static const char *get_buffer(struct area *area)
{
	if (area->fd < 0)
		return NOT_CACHED;
	if (area_get_other(area, area_stride()))
		return "there is no room for a buffer";
	memset(area->other.start, 1, area->other.size);
	return NULL;
}

/* The file once more, where nothing is mapped yet. */
static const char *map_again(struct area *area)
{
	if (area->fd < 0)
		return NOT_CACHED;
	if (area_get_other(area, area->memory.size) ||
	    mmap(area->other.start, area->other.size, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_FIXED, area->fd, 0) == MAP_FAILED)
		return "there is no room for a second mapping";
	return NULL;
}

static int64_t read_parts(struct area *area, size_t bytes)
{
	const size_t stride = area_stride();

	for (size_t at = 0; at < area->memory.size; at += stride)
		if (pread(area->fd, area->other.start, bytes, at) != (ssize_t)bytes)
			return -EIO;
	return area->memory.size / stride;
}

static int64_t read_bytes(struct area *area)
{
	return read_parts(area, 1);
}

static int64_t read_all(struct area *area)
{
	return read_parts(area, area_stride());
}

static int64_t write_all(struct area *area)
{
	const size_t stride = area_stride();

	for (size_t at = 0; at < area->memory.size; at += stride)
		if (pwrite(area->fd, area->other.start, stride, at) !=
		    (ssize_t)stride)
			return -EIO;
	return area->memory.size / stride;
}

static int64_t touch_all(struct area *area, const char *name)
{
	const size_t page = page_size();

	touch_find(name)->pages(area->other.start,
				area->other.start + area->other.size, page);
	return area->other.size / page;
}

static int64_t load(struct area *area)
{
	return touch_all(area, "load");
}

static int64_t store(struct area *area)
{
	return touch_all(area, "store");
}

static int64_t populate(struct area *area)
{
	return madvise(area->other.start, area->other.size, MADV_POPULATE_READ) ?
	       -errno : 1;
}

static const struct operation operations[] = {
	{ "read-bytes", get_buffer, read_bytes },
	{ "read", get_buffer, read_all },
	{ "write", get_buffer, write_all },
	{ "loads", map_again, load },
	{ "stores", map_again, store },
	{ "populate", map_again, populate },
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
	OPERATION_PARAM("read"),
	{ }
};

static const struct metric metrics[] = {
	OPERATIONS_METRIC,
	{ }
};

static const struct experiment page_cache = {
	.name = "page-cache",
	.summary = "cached pages of a file: read, written, and mapped by faults",
	.detail =
"The memory is a file, whose pages are cached. read and write: pread and pwrite of 16\n"
"base pages with each call. read-bytes: one byte with each call, the floor. loads: of\n"
"each base page in a new mapping, where a fault maps pages around it, too. stores: the\n"
"same, where none does. populate: one MADV_POPULATE_READ of such a mapping.",
	.example = "--operation loads --memory shmem",
	.params = params,
	.metrics = metrics,
	.shared_params = area_param,
	.shared_metrics = area_metric,
	.measure = measure,
};

EXPERIMENT(page_cache);
