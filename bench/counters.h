/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The machine's own hardware counters, if it has some and permits their use.
 */
#ifndef COUNTERS_H
#define COUNTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "run.h"

#define NR_COUNTERS	10

struct counters {
	const char *set;	/* what --counters names */
	bool opened;
	bool any;		/* at least one is there */
	bool user_only;		/* cache and TLB counters leave the kernel out */
	int fd[NR_COUNTERS];	/* -1: not opened, error[] says why */
	int error[NR_COUNTERS];
};

struct counter_value {
	uint64_t value, enabled_ns, running_ns;
};

struct counter_values {
	struct counter_value of[NR_COUNTERS];
};

/* The choices of --counters. */
const char *counters_set(size_t place);

/* The metric at @place among those of all sets, or NULL. */
const struct metric *counters_metric(size_t place);

/* Opens the counters. Call it before any thread that is to be counted. */
void counters_open(struct counters *counters);

/* Is this metric a counter of the requested set, or no counter at all? */
bool counters_wanted(const struct counters *counters, const char *name);

void counters_read(const struct counters *counters,
		   struct counter_values *values);

/*
 * Adds each requested counter to the results, or the reason why it is absent
 * and the remedy.
 */
void counters_report(struct run *run, const struct counters *counters,
		     const struct counter_values *begin,
		     const struct counter_values *end);

#endif /* COUNTERS_H */
