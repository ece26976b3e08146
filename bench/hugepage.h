/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory whose physical addresses are known up to the size of a huge page,
 * since one is aligned to its size: what tells a cache line's set.
 */
#ifndef HUGEPAGE_H
#define HUGEPAGE_H

#include <stddef.h>

#include "memory.h"
#include "run.h"

#define HUGEPAGE_BYTES	2097152ul

struct hugepages {
	char *start;		/* zeroes, all faulted in and writable */
	size_t size;
	bool hugetlb;		/* else a transparent one */
	struct memory memory;	/* of the transparent one */
	size_t reserved;	/* pages added to the pool, to be given back */
};

/* The option of experiments that get huge pages. */
#define HUGEPAGES_PARAM							\
	{								\
		.name = "set-pool", .type = PARAM_FLAG, .option = true,	\
		.help = "enlarge the system's hugeTLB pool for the time of the run (root)", \
	}

/*
 * Gets at least @bytes in huge pages of 2 MiB: from the hugeTLB pool, which
 * --set-pool enlarges where it has too few, or else transparent ones. The
 * run's "backing" says which. With *unavailable set there are none to be had.
 */
enum status hugepages_get(struct run *run, struct hugepages *pages,
			  size_t bytes, bool *unavailable);
void hugepages_put(struct hugepages *pages);

#endif /* HUGEPAGE_H */
