/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Huge pages of 2 MiB. Their low physical address bits are known, because a
 * huge page is aligned to its size. They give the set of a cache line.
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

/*
 * Maps private memory of the hugeTLB pool at @at, or anywhere for NULL. @size is
 * a multiple of HUGEPAGE_BYTES. With @enlarge a pool that has too few gets @size,
 * or @copies times that. Returns NULL if there are too few.
 * After munmap, hugetlb_give_back() takes from the pool what this added.
 */
char *hugetlb_map(char *at, size_t size, bool enlarge, size_t copies,
		  size_t *added);
void hugetlb_give_back(size_t added);

/* Reports that the hugeTLB pool has no @size bytes, and the remedy. */
enum status hugetlb_unavailable(struct run *run, size_t size);

#endif /* HUGEPAGE_H */
