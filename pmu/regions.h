/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Regions of interest: the counts between a begin and an end marker, without the
 * markers. Regions follow each other and do not nest.
 */
#ifndef FT_REGIONS_H
#define FT_REGIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "call_tree.h"
#include "counts.h"
#include "decode.h"
#include "hierarchy.h"
#include "plugin_api.h"
#include "pmu.h"
#include "stacks.h"
#include "userdata.h"

struct region {
	struct counts *cpu;		/* one per CPU */
	/* Misses per set, of CPU 0..n-1 in turn; NULL if not requested. */
	uint64_t *set_misses[NR_LEVELS];
	/* The counters of functions.h; NULL if not requested. */
	uint64_t *functions;
	struct call_row *calls;
	unsigned int nr_calls;
	uint64_t lost;		/* see struct stacks */
};

struct regions {
	struct pmu *pmu;
	struct stacks *stacks;
	struct region *done;
	unsigned int nr_done;
	bool open;
	struct region begin;		/* the counts when the open region began */
} USERDATA_CONTEXT;

/* While a block is translated: @insn is a marker. */
void regions_watch(struct regions *r, struct qemu_plugin_insn *insn,
		   enum insn_kind kind, enum privilege priv);

/* All counts since the start, as one region. */
void region_whole(const struct pmu *pmu, struct region *whole);
void region_free(struct region *region);

/* The counts of @region, summed over all CPUs. */
void region_sum(const struct pmu *pmu, const struct region *region, struct counts *sum);

/* The rows of set misses of a region for @level: one, or one per CPU. */
unsigned int region_set_rows(const struct pmu *pmu, enum cache_level level);

#endif
