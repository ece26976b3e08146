/* SPDX-License-Identifier: GPL-2.0 */
/* The counts and the model of one guest: what its CPUs share, what each has. */
#ifndef FT_PMU_H
#define FT_PMU_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "counts.h"
#include "hierarchy.h"
#include "options.h"
#include "tally.h"
#include "translation.h"
#include "userdata.h"

#define FT_CACHE_LINE	64

/*
 * Most accesses are to a line that was accessed a moment ago. An entry has the virtual
 * address of such a line, and the start of its set in an L1D with LRU. While the line
 * is the most recently used one of the set, another access to it changes only a count.
 */
#define NR_RECENT_LINES	64
#define NR_HIT_COUNTERS	8

struct recent_lines {
	uint64_t generation;	/* for several CPUs; the only one drops its entries instead */
	/* By the word in the line: accesses in a row do not wait for one counter. */
	uint64_t hits[NR_HIT_COUNTERS][NR_PRIVS];
	unsigned int shift;	/* of the shortest L1 line */
	struct {
		uint64_t start;		/* a virtual address, or NO_RECENT_LINE */
		uint64_t word;		/* as in the set, with CACHE_DIRTY */
		uint64_t *set;
	} line[NR_RECENT_LINES];
} __attribute__((aligned(2048)));	/* so that a shift finds that of a CPU */

/* No access is less than 2^54 bytes behind this: a virtual address has equal bits 63:55. */
#define NO_RECENT_LINE	(UINT64_C(1) << 63)

static inline void recent_lines_drop(struct recent_lines *recent)
{
	for (int i = 0; i < NR_RECENT_LINES; i++)
		recent->line[i].start = NO_RECENT_LINE;
}

/*
 * The same for fetches, by their addresses in QEMU's memory, which lie at one physical
 * address for ever. Nothing but this CPU's fetches changes its L1I, so that a hit takes
 * no lock, and needs no generation. Lines of an L1I are clean.
 */
#define NR_RECENT_FETCHES	64

struct recent_fetches {
	uint64_t hits[NR_PRIVS];
	struct {
		uint64_t start;		/* or NO_RECENT_LINE */
		uint64_t word;		/* as in the set */
		const uint64_t *set;
	} line[NR_RECENT_FETCHES];
} __attribute__((aligned(FT_CACHE_LINE)));

struct pmu_cpu {
	struct translations translations;
	struct counts counts;		/* without tallies and cache levels */
	bool tlbi_unfinished;		/* a TLBI ran and no DSB since */
} __attribute__((aligned(FT_CACHE_LINE)));

#define MAX_CPUS	64

struct pmu {
	struct recent_lines recent[MAX_CPUS];
	struct recent_fetches fetched[MAX_CPUS];
	struct options options;
	unsigned int nr_cpus;
	bool has_l1d;
	bool has_l1i;
	uint64_t line_mask;		/* shortest L1 line minus 1 */
	unsigned int line_shift;
	struct hierarchy caches;
	struct pmu_cpu *cpu;
	struct tallies tallies;
	/* Increases whenever a translation may have changed. */
	uint64_t translation_generation;
	struct code_pages code;
	struct linear_map linear;
	/*
	 * Protects the caches, regions and code pages if there are several CPUs.
	 * It is slower if it crosses two of the host's cache lines.
	 */
	pthread_mutex_t lock __attribute__((aligned(FT_CACHE_LINE)));
} USERDATA_CONTEXT;

static inline uint64_t generation(const struct pmu *pmu)
{
	return __atomic_load_n(&pmu->translation_generation, __ATOMIC_RELAXED);
}

static inline void translations_changed(struct pmu *pmu)
{
	__atomic_fetch_add(&pmu->translation_generation, 1, __ATOMIC_RELAXED);
	if (pmu->nr_cpus == 1)
		recent_lines_drop(&pmu->recent[0]);
}

static inline void pmu_lock(struct pmu *pmu)
{
	if (pmu->nr_cpus > 1)
		pthread_mutex_lock(&pmu->lock);
}

static inline void pmu_unlock(struct pmu *pmu)
{
	if (pmu->nr_cpus > 1)
		pthread_mutex_unlock(&pmu->lock);
}

/*
 * Sets up all that @pmu's options request; the rest of @pmu is zero. @nr_cpus is at
 * most MAX_CPUS. On failure writes the reason to @error.
 */
bool pmu_init(struct pmu *pmu, unsigned int nr_cpus, char *error, size_t error_size);

/* Ends QEMU with one sentence, and leaves no file that looks like a result. */
__attribute__((noreturn, format(printf, 2, 3)))
void pmu_die(const struct pmu *pmu, const char *format, ...);

/* All that CPU @cpu has counted so far. */
void pmu_gather(const struct pmu *pmu, unsigned int cpu, struct counts *counts);

#endif
