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

/*
 * Physical addresses of instructions.
 *
 * QEMU tells a plugin where an instruction lies in its own memory, not where in
 * the guest's. Guest memory is a few mappings of QEMU's, so one page known both
 * ways places all others of its mapping: a page that was executed and is read as
 * data too, as every kernel's entry does with its literals. From plugin API 5 on
 * QEMU can be asked. Fetches that come before are counted as unplaced.
 */
#define MAX_CODE_BLOCKS	8
#define NR_CODE_PAGES	256

struct code_block {
	uint64_t start, end;	/* in QEMU's memory */
	uint64_t pa_minus_host;
};

struct code_pages {
	struct code_block block[MAX_CODE_BLOCKS];
	unsigned int nr_blocks;
	/* Executed since translations last changed, by virtual page. */
	uint64_t generation;
	struct {
		uint64_t va_page;
		uint64_t host;
	} executed[NR_CODE_PAGES];
};

/* The instruction at @va lies at @host. */
void code_pages_executed(struct code_pages *c, uint64_t generation, uint64_t va,
			 uint64_t host);
/* The data at @va lies at @pa. */
void code_pages_read(struct code_pages *c, uint64_t generation, uint64_t va,
		     uint64_t pa);
/* Whether the instruction at @host has a known place, and @pa if so. */
bool code_pages_place(const struct code_pages *c, uint64_t host, uint64_t *pa);

#if FT_HAS_REGISTERS && !FT_HAS_TRANSLATE
/*
 * A page that is cleared has mostly not been accessed before, so its translation
 * is not known, and there is nobody to ask. But a kernel clears pages in its
 * linear map: the gigabytes of its half of the addresses in which every
 * translation so far had the same offset are taken to be linear.
 */
#define NR_LINEAR	64
#define LINEAR_SHIFT	30
/* Translations that have to agree before the next one is taken on trust. */
#define LINEAR_PROOF	8

struct linear_map {
	struct {
		uint64_t number;	/* va >> LINEAR_SHIFT */
		uint64_t pa_minus_va;
		unsigned int agreed;
		bool broken;
	} part[NR_LINEAR];
};
#else
struct linear_map {
	char none;
};
#endif

/* The data at @va lies at @pa. */
void linear_note(struct linear_map *map, uint64_t va, uint64_t pa);
#if FT_HAS_REGISTERS && !FT_HAS_TRANSLATE
/* Whether @va is taken to be in a linear map, and @pa if so. */
bool linear_place(const struct linear_map *map, uint64_t va, uint64_t *pa);
#endif

#endif
