/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Read faults that get a page of their own, of which a kernel with write-intent faults
 * tells by a tracepoint. Its samples come in the ring of the faults. Each record there
 * then has the number of its event, which is taken out again.
 */
#ifndef UPGRADES_H
#define UPGRADES_H

#include <linux/perf_event.h>
#include <stdint.h>

#include "output.h"

/* The number of the tracepoint; 0 if the kernel has none, or it may not be read. */
uint64_t upgrades_tracepoint(void);

/* The event. */
struct perf_event_attr upgrades_event(uint64_t tracepoint);

/* Takes an event's number out of a record. With @upgrade it is now a struct ft_upgrade. */
void upgrades_unpack(struct perf_event_header *record, uint64_t upgrade);

#endif
