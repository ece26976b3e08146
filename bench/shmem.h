/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A huge page of shared memory. Unlike other huge pages it can be mapped again
 * in pieces, whose physical colours are known, without root.
 */
#ifndef SHMEM_H
#define SHMEM_H

#include <stddef.h>

#include "memory.h"
#include "run.h"

struct shmem {
	int fd;
	struct memory whole;	/* mapped as a huge page, which keeps it one */
};

/*
 * Gets one huge page of 2 MiB, zeroed; @set writes the policy that gives it
 * (root). *unavailable: the machine gives none.
 */
enum status shmem_get(struct run *run, struct shmem *shmem, bool set,
		      bool *unavailable);
void shmem_put(struct shmem *shmem);

/*
 * Maps @pages pages read-only, in base pages: the first @colors of the huge
 * page, over and over. 0 or a negative errno.
 */
int shmem_map_pieces(const struct shmem *shmem, struct memory *memory,
		     size_t pages, size_t colors);

#endif /* SHMEM_H */
