/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Read faults that get a page of their own, of which a kernel with write-intent faults
 * tells by a tracepoint. Its samples come in the ring of the faults. Each record there
 * then has the number of its event, which is taken out again.
 */
#ifndef UPGRADES_H
#define UPGRADES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "output.h"

/* The number of the tracepoint; 0 if the kernel has none, or it may not be read. */
uint64_t upgrades_tracepoint(void);

/* Opens its event: a file descriptor, or -1. */
int upgrades_open(uint64_t tracepoint, pid_t thread, int cpu, bool on_exec);

/* Takes an event's number out of a record. With @upgrade it is now a struct ft_upgrade. */
void upgrades_unpack(struct perf_event_header *record, uint64_t upgrade);

#endif
