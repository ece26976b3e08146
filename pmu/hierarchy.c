// SPDX-License-Identifier: GPL-2.0
#include "hierarchy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *level_name(enum cache_level level)
{
	static const char * const names[NR_LEVELS] = { "l1i", "l1d", "l2", "l3" };

	return names[level];
}

static bool check(const struct hierarchy_setup *setup, char *error,
		  size_t error_size)
{
	for (unsigned int cpu = 0; cpu < setup->nr_cpus; cpu++) {
		const struct level_setup *levels = setup->cpu[cpu];
		uint32_t line = 0;

		for (int l = 0; l < NR_LEVELS; l++) {
			const char *why;

			if (!levels[l].present)
				continue;
			why = cache_geometry_error(&levels[l].geometry);
			/* A victim must fit into one line of the level below. */
			if (!why && levels[l].geometry.line < line)
				why = "its line is shorter than that of the level above";
			if (why) {
				snprintf(error, error_size, "invalid %s geometry for CPU %u: %s",
					 level_name(l), cpu, why);
				return false;
			}
			if (levels[l].geometry.line > line)
				line = levels[l].geometry.line;
		}
		if ((levels[LEVEL_L2].present || levels[LEVEL_L3].present) &&
		    !levels[LEVEL_L1D].present) {
			snprintf(error, error_size,
				 "CPU %u has an l2 or l3 and no l1d to miss into it", cpu);
			return false;
		}
	}
	return true;
}

static struct cache *build(const struct hierarchy_setup *setup, unsigned int cpu,
			   enum cache_level level)
{
	struct cache *c = malloc(sizeof(*c));
	/* Every cache has its own random sequence. */
	uint64_t seed = setup->seed + cpu * NR_LEVELS + level;

	if (c && !cache_init(c, &setup->cpu[cpu][level].geometry, seed,
			     setup->histogram[level])) {
		free(c);
		c = NULL;
	}
	return c;
}

static void find_below(struct cpu_caches *own)
{
	for (int l = 0; l < NR_LEVELS; l++) {
		/* The L1D is not below the L1I. */
		int below = l < LEVEL_L2 ? LEVEL_L2 : l + 1;

		while (below < LEVEL_MEMORY && !own->at[below])
			below++;
		own->below[l] = below;
	}
}

bool hierarchy_init(struct hierarchy *h, const struct hierarchy_setup *setup,
		    char *error, size_t error_size)
{
	memset(h, 0, sizeof(*h));
	if (!check(setup, error, error_size))
		return false;
	h->cpu = calloc(setup->nr_cpus, sizeof(*h->cpu));
	if (!h->cpu)
		goto no_memory;
	h->nr_cpus = setup->nr_cpus;
	for (unsigned int cpu = 0; cpu < h->nr_cpus; cpu++) {
		for (int l = 0; l < NR_LEVELS; l++) {
			if (l == LEVEL_L3 && cpu) {
				h->cpu[cpu].at[l] = h->cpu[0].at[l];
				continue;
			}
			if (!setup->cpu[cpu][l].present)
				continue;
			h->cpu[cpu].at[l] = build(setup, cpu, l);
			if (!h->cpu[cpu].at[l])
				goto no_memory;
		}
		find_below(&h->cpu[cpu]);
	}
	return true;

no_memory:
	hierarchy_destroy(h);
	snprintf(error, error_size, "not enough memory for the caches");
	return false;
}

void hierarchy_destroy(struct hierarchy *h)
{
	for (unsigned int cpu = 0; cpu < h->nr_cpus; cpu++) {
		for (int l = 0; l < NR_LEVELS; l++) {
			struct cache *c = h->cpu[cpu].at[l];

			if (!c || (l == LEVEL_L3 && cpu))
				continue;
			cache_destroy(c);
			free(c);
		}
	}
	free(h->cpu);
	memset(h, 0, sizeof(*h));
}

static bool is_dirty(uint64_t word)
{
	return word != CACHE_EMPTY && (word & CACHE_DIRTY);
}

/* Writes @victim, which has left @level dirty, to the level below. */
static void let_go(struct cpu_caches *own, enum cache_level level, uint64_t victim,
		   enum privilege priv)
{
	do {
		enum cache_level to = own->below[level];
		uint64_t pa = victim >> 1 << own->at[level]->line_shift;

		own->counts[priv][level].writebacks++;
		if (to == LEVEL_MEMORY ||
		    cache_access(own->at[to], cache_line(own->at[to], pa), CACHE_DIRTY,
				 &victim))
			return;
		level = to;
	} while (is_dirty(victim));
}

/*
 * Takes the line of @pa from @other, or, with @keep, makes its copy clean. Dirty
 * data is written through the other CPU's private levels to the shared one.
 */
static void snoop(struct cpu_caches *other, uint64_t pa, bool keep,
		  enum privilege priv)
{
	bool dirty = false;

	for (int l = LEVEL_L1D; l <= LEVEL_L2; l++) {
		struct cache *c = other->at[l];

		if (!c)
			continue;
		if (keep) {
			dirty |= cache_clean(c, cache_line(c, pa));
		} else {
			uint64_t word = cache_remove(c, cache_line(c, pa));

			dirty |= is_dirty(word);
		}
		if (!dirty)
			continue;
		if (l == LEVEL_L1D && other->at[LEVEL_L2])
			other->counts[priv][l].writebacks++;
		else
			let_go(other, l, cache_line(c, pa) << 1 | CACHE_DIRTY, priv);
	}
}

/* Every other CPU drops its copy, or, with @keep, makes it clean. */
static inline void snoop_others(struct hierarchy *h, unsigned int cpu, uint64_t pa,
				bool keep, enum privilege priv)
{
	for (unsigned int i = 0; i < h->nr_cpus; i++)
		if (i != cpu)
			snoop(&h->cpu[i], pa, keep, priv);
}

void hierarchy_take(struct hierarchy *h, unsigned int cpu, uint64_t pa,
		    enum privilege priv)
{
	snoop_others(h, cpu, pa, false, priv);
}

/*
 * After a miss in @level that evicted @victim: reads the levels below up to the one
 * that hits, then writes back the victims, those of the deepest level first.
 * @snooped: no other CPU has a dirty copy.
 */
static void miss(struct hierarchy *h, unsigned int cpu, enum cache_level level,
		 uint64_t pa, uint64_t victim, bool snooped, enum privilege priv)
{
	struct cpu_caches *own = &h->cpu[cpu];
	struct {
		enum cache_level level;
		uint64_t word;
	} dirty[NR_LEVELS];
	unsigned int nr_dirty = 0;
	uint64_t old = victim;
	bool hit;

	do {
		struct cache *c = own->at[level];

		own->counts[priv][level].misses++;
		cache_note_miss(c, cache_line(c, pa));
		if (is_dirty(old)) {
			dirty[nr_dirty].level = level;
			dirty[nr_dirty++].word = old;
		}
		level = own->below[level];
		/* The shared level: another CPU may have a newer copy. */
		if (level >= LEVEL_L3 && !snooped) {
			snoop_others(h, cpu, pa, true, priv);
			snooped = true;
		}
		if (level == LEVEL_MEMORY)
			break;
		c = own->at[level];
		own->counts[priv][level].accesses++;
		hit = cache_access(c, cache_line(c, pa), 0, &old);
	} while (!hit);
	while (nr_dirty--)
		let_go(own, dirty[nr_dirty].level, dirty[nr_dirty].word, priv);
}

void hierarchy_data_miss(struct hierarchy *h, unsigned int cpu, uint64_t pa,
			 bool write, uint64_t victim, enum privilege priv)
{
	if (write)
		snoop_others(h, cpu, pa, false, priv);
	miss(h, cpu, LEVEL_L1D, pa, victim, write || h->nr_cpus == 1, priv);
}

void hierarchy_fetch(struct hierarchy *h, unsigned int cpu, uint64_t pa,
		     enum privilege priv)
{
	struct cpu_caches *own = &h->cpu[cpu];
	struct cache *l1i = own->at[LEVEL_L1I];
	uint64_t old;

	own->counts[priv][LEVEL_L1I].accesses++;
	if (!cache_access(l1i, cache_line(l1i, pa), 0, &old))
		miss(h, cpu, LEVEL_L1I, pa, old, h->nr_cpus == 1, priv);
}
