/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The page size with which an anonymous mapping is faulted in.
 */
#ifndef THP_H
#define THP_H

#include <stddef.h>
#include <sys/mman.h>

#include "memory.h"
#include "run.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE	25	/* Linux 6.1 */
#endif

/* The choices of --page, and the size of each in bytes. */
const char *thp_page(size_t place);
size_t thp_page_bytes(const char *choice);

/*
 * Checks whether the kernel's policy gives pages of @bytes, and no larger ones,
 * to a mapping that asks for them. @set: writes such a policy first (root; only
 * for a machine that does nothing else).
 * STATUS_OK and *unavailable: it does not, and this was reported to the run.
 */
enum status thp_prepare(struct run *run, size_t bytes, bool set,
			bool *unavailable);

/* The same for shared memory, in base pages, too. */
enum status thp_prepare_shmem(struct run *run, size_t bytes, bool set,
			      bool *unavailable);

/*
 * The same for the policy of all mappings, one of never, madvise and always:
 * is it in force, or, with @set, can it be written?
 */
enum status thp_require(struct run *run, const char *policy, bool set,
			bool *unavailable);

/* Requests pages of @bytes in the mapping, and no larger ones. 0 or -errno. */
int thp_advise(const struct memory *memory, size_t bytes);

/*
 * The same after thp_prepare() has written the policy: returns when khugepaged
 * has scanned the mapping. It does not touch the mapping after that.
 */
int thp_advise_and_wait(const struct memory *memory, size_t bytes);

/* The size of a page that a PMD maps, or 0 on a kernel without THP. */
size_t thp_pmd_bytes(void);

/*
 * The kernel's count of folios of @bytes, by the name of the file in
 * hugepages-*kB/stats. -1 if it does not have it.
 */
int64_t thp_stat(size_t bytes, const char *name);

#endif /* THP_H */
