/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory whose low physical address bits are known, because a huge page is
 * aligned to its size. They give the set of a cache line.
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
	bool hugetlb;		/* otherwise transparent */
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
 * --set-pool enlarges if it has too few, or otherwise transparent ones. The
 * run's "backing" says which. *unavailable: the machine gives none.
 */
enum status hugepages_get(struct run *run, struct hugepages *pages,
			  size_t bytes, bool *unavailable);
void hugepages_put(struct hugepages *pages);

#endif /* HUGEPAGE_H */
