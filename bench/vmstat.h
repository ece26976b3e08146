/* SPDX-License-Identifier: GPL-2.0 */
#ifndef VMSTAT_H
#define VMSTAT_H

#include <stddef.h>

#include "run.h"

/* The text of /proc/vmstat, kept as it is until nothing is measured any more. */
struct vmstat {
	char text[16384];
	size_t len;
};

/* Takes /proc/vmstat; an empty text where there is none. */
void vmstat_take(struct vmstat *vmstat);

/* The metric at that place of those that are reported, or NULL. */
const struct metric *vmstat_metric(size_t place);

/* Adds the differences of those counters to the run's results. */
void vmstat_report(struct run *run, const struct vmstat *begin,
		   const struct vmstat *end);

#endif /* VMSTAT_H */
