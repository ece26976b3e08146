/* SPDX-License-Identifier: GPL-2.0 */
#ifndef VMSTAT_H
#define VMSTAT_H

#include <stddef.h>

#include "run.h"

/* The text of /proc/vmstat; it is parsed after the measurement. */
struct vmstat {
	char text[16384];
	size_t len;
};

/* Reads /proc/vmstat; an empty text if there is none. */
void vmstat_take(struct vmstat *vmstat);

/* The metric at @place among those that are reported, or NULL. */
const struct metric *vmstat_metric(size_t place);

/* Adds the differences of those counters to the run's results. */
void vmstat_report(struct run *run, const struct vmstat *begin,
		   const struct vmstat *end);

#endif /* VMSTAT_H */
