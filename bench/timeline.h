/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Every page fault of a region with its time and address, from perf's
 * software page-fault event.
 *
 * The event does not tell reads from writes, but the order is known: a touch
 * completes after the last fault of the page. So for a touch that writes, the
 * last fault of a page was handled as a write, and any fault before it as a
 * read (it mapped a zero page, which had to be replaced).
 */
#ifndef TIMELINE_H
#define TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

struct fault_sample {
	uint64_t t_ns;		/* since the region began */
	uint64_t page;		/* index in the mapping, in base pages */
	bool write;
};

struct timeline {
	bool asked;		/* timeline_open() was called */
	bool open;		/* fd is */
	const char *begin;	/* the mapping whose faults are wanted */
	const char *end;
	bool writes;		/* the touch writes: see above */

	int fd;
	void *ring;		/* NULL: not open */
	size_t ring_size;
	struct fault_sample *samples;
	size_t nr_samples;
	uint64_t lost;
	const char *why;	/* why there is no timeline */
};

/* The option, for experiments that have a timeline. */
#define TIMELINE_PARAM							\
	{								\
		.name = "timeline",					\
		.help = "also list every fault: [ns, page, 1 if handled as a write]", \
		.type = PARAM_FLAG, .option = true,			\
	}

/* Prepares to record the faults of a mapping. @writes: the touch writes. */
void timeline_open(struct timeline *timeline, void *map, size_t size,
		   bool writes);

/* Around the region. */
void timeline_start(struct timeline *timeline);
void timeline_stop(struct timeline *timeline);

/* Reads the samples; their times are counted from @epoch. */
void timeline_collect(struct timeline *timeline, struct timespec epoch);

/* Writes the members "timeline", "timeline_lost", "timeline_kinds". */
void timeline_print(const struct timeline *timeline, FILE *out);

void timeline_close(struct timeline *timeline);

#endif /* TIMELINE_H */
