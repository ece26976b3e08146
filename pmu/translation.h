/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A CPU's own cache of translations, since asking QEMU for each access takes
 * longer than all else that the model does.
 *
 * It is as right as the architecture's rules for TLBs: software has to execute a
 * TLBI before a page that could be accessed maps to another address, and a write
 * to TTBR, TCR or SCTLR selects other tables. At each the generation goes up, and
 * with it all entries of all CPUs are dropped. A change of permissions alone does
 * not matter here: an access is only seen once it was allowed.
 */
#ifndef FT_TRANSLATION_H
#define FT_TRANSLATION_H

#include <stdbool.h>
#include <stdint.h>

#include "plugin_api.h"

/* The smallest page; larger ones are entered piece by piece. */
#define FT_PAGE_SHIFT	12
#define FT_PAGE_SIZE	(UINT64_C(1) << FT_PAGE_SHIFT)

#define NR_TRANSLATIONS	512

struct translation {
	uint64_t va_page;	/* ~0 for none: a page number has fewer bits */
	uint64_t pa_minus_va;
};

struct translations {
	uint64_t generation;
	struct translation entry[NR_TRANSLATIONS];
};

void translations_drop(struct translations *t);

/*
 * Finds @va in the cache. The caller passes the current generation.
 */
static inline bool translations_find(struct translations *t, uint64_t generation,
				     uint64_t va, uint64_t *pa)
{
	uint64_t va_page = va >> FT_PAGE_SHIFT;
	const struct translation *e = &t->entry[va_page % NR_TRANSLATIONS];

	if (t->generation != generation) {
		translations_drop(t);
		t->generation = generation;
		return false;
	}
	*pa = va + e->pa_minus_va;
	return e->va_page == va_page;
}

static inline void translations_enter(struct translations *t, uint64_t va,
				      uint64_t pa)
{
	struct translation *e = &t->entry[(va >> FT_PAGE_SHIFT) % NR_TRANSLATIONS];

	e->va_page = va >> FT_PAGE_SHIFT;
	e->pa_minus_va = pa - va;
}

enum lookup { LOOKUP_RAM, LOOKUP_DEVICE, LOOKUP_FAILED };

/* Asks QEMU, in a memory callback, where the access to @va went. */
enum lookup translation_lookup(qemu_plugin_meminfo_t info, uint64_t va,
			       uint64_t *pa);

#endif
