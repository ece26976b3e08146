/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory that several threads touch at once, a share each.
 */
#ifndef SHARE_H
#define SHARE_H

#include <pthread.h>
#include <stddef.h>

#include "memory.h"
#include "run.h"
#include "touch.h"

struct meeting;

struct share {
	pthread_t thread;
	struct meeting *meeting;
	const struct touch *touch;	/* NULL: MADV_POPULATE_WRITE */
	char *begin, *end;
	char *scratch;			/* a page to warm up on */
	unsigned int cpu;		/* place among those of cpus.h */
	int error;			/* of madvise */
};

/*
 * Whole pages of @page bytes for each thread; shares differ by at most one. The
 * threads have @cpus CPUs in turn.
 */
void shares_divide(struct share *shares, unsigned int threads,
		   unsigned int cpus, const struct memory *memory, size_t page);

/*
 * Touches all shares in the measured region. This thread does it if there is
 * only one share; otherwise a thread for each, created before the region and
 * pinned to its CPU.
 */
enum status shares_touch(struct run *run, struct share *shares,
			 unsigned int threads);

#endif /* SHARE_H */
