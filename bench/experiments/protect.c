// SPDX-License-Identifier: GPL-2.0
/*
 * mprotect(2) of memory that is there or not, and the first stores after it.
 */
#include <errno.h>
#include <sys/mman.h>

#include "operation.h"

static int protect(struct area *area, int access)
{
	return mprotect(area->memory.start, area->memory.size, access);
}

static const char *forbid_all(struct area *area)
{
	return protect(area, PROT_NONE) ? "mprotect failed" : NULL;
}

static const char *forbid_writes(struct area *area)
{
	return protect(area, PROT_READ) ? "mprotect failed" : NULL;
}

static const char *forbid_and_permit(struct area *area)
{
	const char *why = forbid_writes(area);

	if (!why && protect(area, PROT_READ | PROT_WRITE))
		why = "mprotect failed";
	return why;
}

static int64_t permit_writes(struct area *area)
{
	return protect(area, PROT_READ | PROT_WRITE) ? -errno : 1;
}

static int64_t permit_reads_only(struct area *area)
{
	return protect(area, PROT_READ) ? -errno : 1;
}

static int64_t guard_pages(struct area *area)
{
	const size_t stride = area_stride();

	for (size_t at = 0; at < area->memory.size; at += stride)
		if (mprotect(area->memory.start + at, page_size(), PROT_NONE))
			return -errno;
	return area->memory.size / stride;
}

static int64_t store(struct area *area)
{
	area_write(area);
	return area->memory.size / page_size();
}

static const struct operation operations[] = {
	{ "none-to-write", forbid_all, permit_writes },
	{ "write-to-read", NULL, permit_reads_only },
	{ "read-to-write", forbid_writes, permit_writes },
	{ "guards", NULL, guard_pages },
	{ "stores-after", forbid_and_permit, store },
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
	OPERATION_PARAM("write-to-read"),
	{ }
};

static const struct metric metrics[] = {
	OPERATIONS_METRIC,
	{ }
};

static const struct experiment protect_experiment = {
	.name = "protect",
	.summary = "mprotect of memory, and the first stores after it",
	.detail =
"none-to-write, write-to-read and read-to-write: one call changes the protection\n"
"of all memory. guards: a call for each 16th base page forbids every access to\n"
"it. stores-after: stores to each base page after writes were forbidden and\n"
"permitted again.",
	.example = "--operation read-to-write --memory 64k",
	.params = params,
	.metrics = metrics,
	.shared_params = area_param,
	.shared_metrics = area_metric,
	.measure = measure,
};

EXPERIMENT(protect_experiment);
