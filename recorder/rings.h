/* SPDX-License-Identifier: GPL-2.0 */
/* perf's event of page faults, one for each CPU (and thread), and its rings. */
#ifndef RINGS_H
#define RINGS_H

#include <poll.h>

#include "calls.h"
#include "code.h"
#include "output.h"
#include "thp.h"

struct ring {
	struct perf_event_mmap_page *head;
	const char *data;
	/* Of the first event on this CPU, which owns the ring. */
	int fd;
	/* The event that wakes this process while there is new code; -1 for none. */
	int waker;
	/* Up to where its records are expected, as data_head. */
	uint64_t expected;
	int cpu;
};

struct rings {
	/* Of enum ft_flags: what is recorded. */
	unsigned int flags;
	struct ring *ring;
	size_t nr_rings;
	/* Bytes of a ring's data. */
	size_t size;
	/* All events, those that own a ring and those that write to another's. */
	int *events;
	size_t nr_events;
	/* Those of system calls are apart, since they count no faults. */
	struct calls calls;
	uint64_t samples;
	struct thp thp;
	/* Who forbids huge pages is not recorded. */
	bool ignore_thp;
	/* Of the last drain, as CLOCK_MONOTONIC has it, in ns. */
	uint64_t time;
	/* Drains since the last one that had new code. */
	unsigned int calm;
};

/*
 * Opens the events of threads; `on_exec`: they begin to count when the thread
 * executes a program. 0 or -errno; -ENOBUFS if no ring could be mapped.
 */
int rings_open(struct rings *rings, const pid_t *threads, size_t nr_threads,
	       bool on_exec);

/* Writes all that the rings have, and ends a round. */
void rings_drain(struct rings *rings, struct code *code,
		 struct output *output);

void rings_disable(struct rings *rings);

/* How many faults the events counted, recorded or not. */
uint64_t rings_count(const struct rings *rings);

#endif
