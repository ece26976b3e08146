// SPDX-License-Identifier: GPL-2.0
/*
 * madvise(2) of memory: given back, aged, collapsed, populated.
 */
#include <errno.h>
#include <sys/mman.h>

#include "operation.h"
#include "thp.h"

#ifndef MADV_COLD
#define MADV_COLD		20	/* Linux 5.4 */
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ	22	/* Linux 5.14 */
#define MADV_POPULATE_WRITE	23
#endif

static int64_t give(struct area *area, int advice)
{
	return madvise(area->memory.start, area->memory.size, advice) ?
	       -errno : 1;
}

static int64_t give_back(struct area *area)
{
	return give(area, MADV_DONTNEED);
}

static int64_t give_back_lazily(struct area *area)
{
	return give(area, MADV_FREE);
}

static int64_t age(struct area *area)
{
	return give(area, MADV_COLD);
}

static int64_t collapse(struct area *area)
{
	return give(area, MADV_COLLAPSE);
}

static int64_t populate_to_read(struct area *area)
{
	return give(area, MADV_POPULATE_READ);
}

static int64_t populate_to_write(struct area *area)
{
	return give(area, MADV_POPULATE_WRITE);
}

static const char *can_collapse(struct area *area)
{
	if (thp_advise(&area->memory, thp_pmd_bytes()))
		return "this kernel has no transparent huge pages (CONFIG_TRANSPARENT_HUGEPAGE)";
	return area->memory.size < thp_pmd_bytes() ?
	       "a huge page is larger than --size: give a larger one" : NULL;
}

/* The memory is as it was when it was mapped, and the advice on huge pages stays. */
static const char *empty(struct area *area)
{
	return give_back(area) < 0 ? "MADV_DONTNEED failed" : NULL;
}

static const struct operation operations[] = {
	{ "dontneed", NULL, give_back },
	{ "free", NULL, give_back_lazily },
	{ "cold", NULL, age },
	{ "collapse", can_collapse, collapse },
	{ "populate-read", empty, populate_to_read },
	{ "populate-write", empty, populate_to_write },
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
	OPERATION_PARAM("dontneed"),
	{ }
};

static const struct metric metrics[] = {
	OPERATIONS_METRIC,
	{ }
};

static const struct experiment advise = {
	.name = "advise",
	.summary = "madvise of memory: given back, aged, collapsed, populated",
	.detail =
"One call of madvise for all memory, by the name of its advice. Before populate-*\n"
"the memory is emptied by MADV_DONTNEED, so that pages of --memory's size come. Before\n"
"collapse MADV_HUGEPAGE is given.",
	.example = "--operation populate-write --memory 64k",
	.params = params,
	.metrics = metrics,
	.shared_params = area_param,
	.shared_metrics = area_metric,
	.measure = measure,
};

EXPERIMENT(advise);
