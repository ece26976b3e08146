/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which size of page an anonymous mapping is faulted in with.
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

/* The choices of --page, and the bytes that one stands for. */
const char *thp_page(size_t place);
size_t thp_page_bytes(const char *choice);

/*
 * Finds out whether the kernel's policy gives pages of @bytes, and no larger
 * ones, to a mapping that asks for them; with @set writes a policy that does
 * (root, and meant for a machine of one's own).
 * STATUS_OK with *unavailable set: reported to the run as such.
 */
enum status thp_prepare(struct run *run, size_t bytes, bool set,
			bool *unavailable);

/*
 * The same for the policy of all mappings, one of never, madvise and always:
 * is it in force, or with @set can it be written?
 */
enum status thp_require(struct run *run, const char *policy, bool set,
			bool *unavailable);

/* Asks for pages of @bytes in the mapping, and for no larger ones. 0 or -errno. */
int thp_advise(const struct memory *memory, size_t bytes);

/*
 * The same where the policy is one that thp_prepare() wrote: returns when
 * khugepaged has looked at the mapping, which it then leaves alone.
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
