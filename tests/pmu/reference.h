/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A second model of the same caches, to check the first. It is written to be easy to
 * read, from the description in pmu/hierarchy.h only, without its code. Every line has
 * its own record, ages are time stamps, a tree is an array of nodes.
 */
#ifndef REFERENCE_H
#define REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

#define REF_LEVELS	4	/* L1I, L1D, L2, L3 */

struct ref_shape {
	bool present;
	uint64_t size, ways, line;
	int policy;		/* 0 LRU, 1 PLRU, 2 random */
};

struct ref_counts {
	uint64_t accesses, misses, writebacks;
};

struct ref_model;

struct ref_model *ref_new(int cpus, struct ref_shape (*shapes)[REF_LEVELS],
			  uint64_t seed);
void ref_free(struct ref_model *m);
void ref_data(struct ref_model *m, int cpu, uint64_t pa, bool write, int who);
void ref_fetch(struct ref_model *m, int cpu, uint64_t pa, int who);
struct ref_counts ref_counts(const struct ref_model *m, int cpu, int who, int level);
/* Misses of one set; for the L3 pass CPU 0. */
uint64_t ref_set_misses(const struct ref_model *m, int cpu, int level, uint64_t set);

#endif
