/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The caches of a machine: per CPU an L1I, an L1D and a private L2, and one L3
 * that all share. Each of them may be absent.
 *
 * What is modelled
 * - Caches are indexed and tagged by physical address. A level allocates on a
 *   read and on a write, and writes a dirty line back when it evicts the line.
 * - Levels are neither inclusive nor exclusive: a line is allocated in every level
 *   that missed, and each level evicts it independently.
 * - A miss reads the level below before its victim is written back. A write-back
 *   accesses the line in the level below, and allocates it there if it is absent.
 *   It counts as a write-back of the upper level, not as an access of the lower
 *   level.
 * - Data is coherent between CPUs (MSI): a write removes the line from every other
 *   CPU; a read that misses the CPU's own caches makes another CPU's dirty copy
 *   clean. In both cases a dirty copy is written back to the shared level.
 *   Instruction caches do not see writes, as in the architecture.
 *
 * What is not modelled: time, and what README.md lists.
 */
#ifndef FT_HIERARCHY_H
#define FT_HIERARCHY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cache.h"

enum cache_level { LEVEL_L1I, LEVEL_L1D, LEVEL_L2, LEVEL_L3, NR_LEVELS };

#define LEVEL_MEMORY	NR_LEVELS

/* Who causes an access; counts are split by it. */
enum privilege { PRIV_USER, PRIV_KERNEL, NR_PRIVS };

struct level_counts {
	uint64_t accesses;
	uint64_t misses;
	uint64_t writebacks;
};

struct cpu_caches {
	/* NULL if the CPU has none; all CPUs have the same L3. */
	struct cache *at[NR_LEVELS];
	/* For each level, the next one below that this CPU has. */
	enum cache_level below[NR_LEVELS];
	/* The counts of this CPU's accesses, and of write-backs of its lines. */
	struct level_counts counts[NR_PRIVS][NR_LEVELS];
};

struct hierarchy {
	unsigned int nr_cpus;
	struct cpu_caches *cpu;
};

struct level_setup {
	bool present;
	struct cache_geometry geometry;
};

struct hierarchy_setup {
	unsigned int nr_cpus;
	struct level_setup (*cpu)[NR_LEVELS];	/* nr_cpus of them; L3 of CPU 0 counts */
	uint64_t seed;
	bool histogram[NR_LEVELS];
};

const char *level_name(enum cache_level level);

/*
 * Writes what is wrong with @setup to @error. All geometries are checked here.
 */
bool hierarchy_init(struct hierarchy *h, const struct hierarchy_setup *setup,
		    char *error, size_t error_size);
void hierarchy_destroy(struct hierarchy *h);

/* The parts of hierarchy_data() that are not inline. */
void hierarchy_data_miss(struct hierarchy *h, unsigned int cpu, uint64_t pa,
			 bool write, uint64_t victim, enum privilege priv);
void hierarchy_take(struct hierarchy *h, unsigned int cpu, uint64_t pa,
		    enum privilege priv);

/*
 * CPU @cpu, which has an L1D, reads or writes within the line that holds @pa.
 */
static inline void hierarchy_data(struct hierarchy *h, unsigned int cpu,
				  uint64_t pa, bool write, enum privilege priv)
{
	struct cpu_caches *own = &h->cpu[cpu];
	struct cache *l1d = own->at[LEVEL_L1D];
	uint64_t old;

	own->counts[priv][LEVEL_L1D].accesses++;
	if (!cache_access(l1d, cache_line(l1d, pa), write ? CACHE_DIRTY : 0, &old))
		hierarchy_data_miss(h, cpu, pa, write, old, priv);
	else if (write && !(old & CACHE_DIRTY) && h->nr_cpus > 1)
		hierarchy_take(h, cpu, pa, priv);
}

/* CPU @cpu, which has an L1I, fetches from the line that holds @pa. */
void hierarchy_fetch(struct hierarchy *h, unsigned int cpu, uint64_t pa,
		     enum privilege priv);

#endif
