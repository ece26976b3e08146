/* SPDX-License-Identifier: GPL-2.0 */
/* System calls that the replay of remedies needs, from their tracepoints. */
#ifndef CALLS_H
#define CALLS_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format.h"

/* Of each ring and thread one event for each call, in the order of enum ft_call. */
struct calls {
	/* -1 for a thread that had ended. */
	int *events;
	/* What their samples begin with. */
	uint64_t *ids;
	size_t nr;
	uint64_t lowest, highest;
};

/* Reads the numbers of the tracepoints; false if there are none, or they are not for this user. */
bool calls_find(uint64_t tracepoints[FT_NR_CALLS]);

/* Makes room for events of so many threads and rings. */
bool calls_room(struct calls *calls, size_t threads);

/* Takes over the next event, -1 for none; its samples go to the ring of another event. */
bool calls_add(struct calls *calls, int event, int ring);

/* Enables or disables all. */
void calls_set(const struct calls *calls, unsigned long request);

void calls_close(struct calls *calls);

/* Which call's sample begins with `id`; -1 if it is that of a fault. */
int calls_which(const struct calls *calls, uint64_t id);

#endif
