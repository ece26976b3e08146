/* SPDX-License-Identifier: GPL-2.0 */
/* What is counted, in the form in which it is compared, summed and printed. */
#ifndef FT_COUNTS_H
#define FT_COUNTS_H

#include <stdint.h>

#include "decode.h"
#include "hierarchy.h"

enum event {
	EV_INSTRUCTIONS,	/* completed: one that faulted is not counted */
	EV_LOADS,		/* of these, instructions that load */
	EV_STORES,		/* ... and that store; an atomic is both */
	EV_DC_ZVA,
	EV_DSB,
	EV_ISB,
	/* Exceptions, by where they were taken from, in the vectors' order. */
	EV_TAKEN_SYNC,
	EV_TAKEN_IRQ,
	EV_TAKEN_FIQ,
	EV_TAKEN_SERROR,
	EV_ERET,
	/* What the caches did not get to see. */
	EV_DEVICE,		/* accesses to devices, which are not cached */
	EV_UNTRANSLATED,	/* accesses whose physical address QEMU withheld */
	EV_ZVA_UNPLACED,	/* DC ZVA whose physical address is not known */
	EV_FETCH_UNPLACED,	/* fetches, likewise */
	NR_EVENTS
};

struct counts {
	uint64_t event[NR_PRIVS][NR_EVENTS];
	uint64_t tlbi[NR_TLBI];
	struct level_counts level[NR_PRIVS][NR_LEVELS];
};

/* All of struct counts are sums, so they are added and subtracted as one row. */
#define NR_COUNTS	(sizeof(struct counts) / sizeof(uint64_t))

#endif
