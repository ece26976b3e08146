/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Each CPU's own cache of translations, since a question to QEMU for each access
 * takes longer than all the rest of the model.
 *
 * It follows the architecture's rules for TLBs: software must execute a TLBI before
 * an accessible page maps to another address, and a write to TTBR, TCR or SCTLR
 * selects other tables. Each of these increases the generation, which invalidates
 * all entries of all CPUs. A change of permissions alone does not matter here: the
 * plugin sees an access only after it was permitted.
 */
#ifndef FT_TRANSLATION_H
#define FT_TRANSLATION_H

#include <stdbool.h>
#include <stdint.h>

#include "plugin_api.h"

/* The smallest page; a larger page has several entries. */
#define FT_PAGE_SHIFT	12
#define FT_PAGE_SIZE	(UINT64_C(1) << FT_PAGE_SHIFT)

#define NR_TRANSLATIONS	512

struct translation {
	uint64_t va_page;	/* ~0: none, since a page number has fewer bits */
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

/* In a memory callback: asks QEMU for the physical address of @va. */
enum lookup translation_lookup(qemu_plugin_meminfo_t info, uint64_t va,
			       uint64_t *pa);

/*
 * Physical addresses of instructions.
 *
 * QEMU tells a plugin the address of an instruction in QEMU's own memory, not in
 * the guest's. Guest memory is a few mappings of QEMU. So one page whose address is
 * known in both gives the addresses of all others in its mapping: a page that was
 * executed and is also read as data, as every kernel's entry code reads its
 * literals. From plugin API 5 on, QEMU gives the address. Earlier fetches are
 * counted as unplaced.
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

/* Records that the instruction at @va is at @host. */
void code_pages_executed(struct code_pages *c, uint64_t generation, uint64_t va,
			 uint64_t host);
/* The data at @va lies at @pa. */
void code_pages_read(struct code_pages *c, uint64_t generation, uint64_t va,
		     uint64_t pa);
/* Whether the physical address of the instruction at @host is known: @pa. */
bool code_pages_place(const struct code_pages *c, uint64_t host, uint64_t *pa);

#if FT_HAS_REGISTERS && !FT_HAS_TRANSLATE
/*
 * A page that is being cleared was usually not accessed before, so its translation
 * is not known, and QEMU cannot be asked for it. But a kernel clears pages in its
 * linear map. A gigabyte of the kernel's addresses is assumed to be linear if every
 * translation in it so far had the same offset.
 */
#define NR_LINEAR	64
#define LINEAR_SHIFT	30
/* Translations that must agree before the next one is assumed. */
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
/* Whether @va is assumed to be in a linear map, and @pa if so. */
bool linear_place(const struct linear_map *map, uint64_t va, uint64_t *pa);
#endif

#endif
