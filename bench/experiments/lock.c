// SPDX-License-Identifier: GPL-2.0
/*
 * mlock(2) and munlock(2) by kind of memory.
 */
#include <errno.h>
#include <sys/mman.h>

#include "operation.h"

static int64_t lock_all(struct area *area)
{
	return mlock(area->memory.start, area->memory.size) ? -errno : 1;
}

static int64_t lock_on_fault(struct area *area)
{
	return mlock2(area->memory.start, area->memory.size, MLOCK_ONFAULT) ?
	       -errno : 1;
}

static int64_t unlock_all(struct area *area)
{
	return munlock(area->memory.start, area->memory.size) ? -errno : 1;
}

/* Also where the limit allows no such size. */
static const char *have_locked(struct area *area)
{
	return lock_on_fault(area) < 0 ?
	       "so much memory may not be locked: give a smaller --size, or raise ulimit -l" :
	       NULL;
}

static const char *can_lock(struct area *area)
{
	const char *why = have_locked(area);

	if (!why && unlock_all(area) < 0)
		why = "munlock failed";
	return why;
}

static int64_t lock_pieces(struct area *area)
{
	const size_t stride = area_stride();

	for (size_t at = 0; at < area->memory.size; at += 2 * stride)
		if (mlock(area->memory.start + at, stride))
			return -errno;
	return area->memory.size / (2 * stride);
}

static const struct operation operations[] = {
	{ "lock", can_lock, lock_all },
	{ "lock-pieces", can_lock, lock_pieces },
	{ "lock-on-fault", can_lock, lock_on_fault },
	{ "unlock", have_locked, unlock_all },
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
	OPERATION_PARAM("lock"),
	{ }
};

static const struct metric metrics[] = {
	OPERATIONS_METRIC,
	{ }
};

static const struct experiment lock = {
	.name = "lock",
	.summary = "mlock and munlock by kind of memory",
	.detail =
"lock: one call for all memory, which fills what is missing. lock-pieces: a call for\n"
"every other 16 base pages. lock-on-fault: one call that locks what is there.\n"
"unlock: one call after that.",
	.example = "--operation lock --memory 64k",
	.params = params,
	.metrics = metrics,
	.shared_params = area_param,
	.shared_metrics = area_metric,
	.measure = measure,
};

EXPERIMENT(lock);
