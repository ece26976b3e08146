/* SPDX-License-Identifier: GPL-2.0 */
/* The counts, in the form in which they are compared, summed and printed. */
#ifndef FT_COUNTS_H
#define FT_COUNTS_H

#include <stdint.h>

#include "decode.h"
#include "hierarchy.h"

enum event {
	EV_INSTRUCTIONS,	/* completed: one that faulted is not counted */
	EV_LOADS,		/* those of them that load */
	EV_STORES,		/* those that store; an atomic is both */
	EV_DC_ZVA,
	EV_DSB,
	EV_ISB,
	EV_SVC,
	EV_IPI,			/* writes that send one; each may go to many CPUs */
	/* Exceptions, by where they were taken from, in the vectors' order. */
	EV_TAKEN_SYNC,
	EV_TAKEN_IRQ,
	EV_TAKEN_FIQ,
	EV_TAKEN_SERROR,
	EV_ERET,
	/* What the caches could not model. */
	EV_DEVICE,		/* accesses to devices, which are not cached */
	EV_UNTRANSLATED,	/* accesses without a physical address from QEMU */
	EV_ZVA_UNPLACED,	/* DC ZVA whose physical address is not known */
	EV_FETCH_UNPLACED,	/* fetches, likewise */
	NR_EVENTS
};

struct counts {
	uint64_t event[NR_PRIVS][NR_EVENTS];
	uint64_t tlbi[NR_TLBI];
	struct level_counts level[NR_PRIVS][NR_LEVELS];
};

/* All members are sums, so struct counts is added and subtracted as one row. */
#define NR_COUNTS	(sizeof(struct counts) / sizeof(uint64_t))

#endif
