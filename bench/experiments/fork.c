// SPDX-License-Identifier: GPL-2.0
/*
 * fork(2) and exit by kind of memory, and the stores after a fork.
 */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "operation.h"

/* fork() copies no entries of private memory that was only read. */
static const char *write_one(struct area *area)
{
	area->memory.start[0] = 1;
	return NULL;
}

static const char *have_child(struct area *area)
{
	write_one(area);
	return area_fork(area);
}

static const char *had_child(struct area *area)
{
	const char *why = have_child(area);

	return why ? why : area_end_child(area);
}

static int64_t start_child(struct area *area)
{
	return area_fork(area) ? -errno : 1;
}

static int64_t end_child(struct area *area)
{
	return area_end_child(area) ? -errno : 1;
}

static int64_t store(struct area *area)
{
	area_write(area);
	return area->memory.size / page_size();
}

static const struct operation operations[] = {
	{ "fork", write_one, start_child },
	{ "exit", have_child, end_child },
	{ "stores", write_one, store },
	{ "stores-copied", have_child, store },
	{ "stores-reused", had_child, store },
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
	OPERATION_PARAM("fork"),
	{ }
};

static const struct metric metrics[] = {
	OPERATIONS_METRIC,
	{ }
};

static const struct experiment fork_experiment = {
	.name = "fork",
	.summary = "fork and exit by kind of memory, and the stores after a fork",
	.detail =
"One page is written first, without which fork copies no entries of memory that was\n"
"only read. fork: of a child that stops at once. exit: the end of such a child, which\n"
"is killed, with all of its memory. stores: to each base page, without a fork.\n"
"stores-copied: the same while a child shares the memory. stores-reused: after the\n"
"child has ended, so that pages have one owner again.",
	.example = "--operation stores-copied --memory 64k",
	.params = params,
	.metrics = metrics,
	.shared_params = area_param,
	.shared_metrics = area_metric,
	.measure = measure,
};

EXPERIMENT(fork_experiment);
