/* SPDX-License-Identifier: GPL-2.0 */
/*
 * An area to swap to, and memory that is swapped out.
 */
#ifndef SWAP_H
#define SWAP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>

#include "memory.h"
#include "run.h"

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT	21	/* Linux 5.4 */
#endif

/* An element of struct experiment's params. */
#define SWAP_PARAM							\
	{								\
		.name = "swap", .type = PARAM_PATH, .option = true,	\
		.help = "block device or file to swap to, which is overwritten (root)", \
	}

/*
 * Swaps to the run's --swap, if it is given, until swap_off(). NULL, or why this
 * machine cannot do it.
 */
const char *swap_on(struct run *run, const char **area);
void swap_off(const char *area);

/* Swaps all of the memory out. NULL, or why this machine cannot do it. */
const char *swap_out_memory(const struct memory *memory);

/* Asks memory.reclaim of this process's cgroup for as many bytes; false: not all were reclaimed. */
bool swap_reclaim(size_t bytes);

#endif /* SWAP_H */
