/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A measured region: the counters on its two sides.
 *
 *	region_begin(run, "populate");
 *	marker_begin();		(arch.h; the modelled PMU starts to count)
 *	... what is measured, and nothing else ...
 *	marker_end();
 *	region_end(run);
 *
 * Markers do not nest, and each pair belongs to one region.
 */
#ifndef REGION_H
#define REGION_H

#include <sys/resource.h>
#include <time.h>

#include "counters.h"
#include "run.h"
#include "timeline.h"
#include "vmstat.h"

struct snapshot {
	struct vmstat vmstat;
	struct counter_values counters;
	struct rusage usage;
	struct timespec time;
};

struct region {
	int who;		/* of getrusage(): RUSAGE_SELF or another */
	struct snapshot begin, end;
	struct counters counters;
	struct timeline timeline;
};

/* The metric at @place among those of every region, or NULL. */
const struct metric *region_metric(size_t place);

/*
 * Prepares to record the faults of a mapping, if the run's --timeline asks.
 * @writes: the touch writes.
 */
void region_timeline(struct run *run, void *map, size_t size, bool writes);

/* Their own first touches are not counted in the region. */
void region_begin(struct run *run, const char *name);
void region_begin_of(struct run *run, const char *name, int who);
void region_end(struct run *run);

/* Adds the region's metrics to the results. Call it after the last region. */
void region_report(struct run *run);

#endif /* REGION_H */
