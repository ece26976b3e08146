// SPDX-License-Identifier: GPL-2.0
#include "regions.h"

#include <stdlib.h>
#include <string.h>

#include "pmu.h"

static void *must_allocate(const struct pmu *pmu, size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (!p)
		pmu_die(pmu, "not enough memory for the counts of a region");
	return p;
}

unsigned int region_set_rows(const struct pmu *pmu, enum cache_level level)
{
	return level == LEVEL_L3 ? 1 : pmu->nr_cpus;
}

/* CPUs may differ, so rows are as long as the cache of their CPU. */
static uint64_t nr_sets(const struct pmu *pmu, unsigned int cpu,
			enum cache_level level)
{
	const struct cache *c = pmu->caches.cpu[cpu].at[level];

	return c ? c->set_mask + 1 : 0;
}

static uint64_t total_sets(const struct pmu *pmu, enum cache_level level)
{
	uint64_t total = 0;

	for (unsigned int cpu = 0; cpu < region_set_rows(pmu, level); cpu++)
		total += nr_sets(pmu, cpu, level);
	return total;
}

void region_whole(const struct pmu *pmu, struct region *whole)
{
	memset(whole, 0, sizeof(*whole));
	whole->cpu = must_allocate(pmu, pmu->nr_cpus, sizeof(*whole->cpu));
	for (unsigned int cpu = 0; cpu < pmu->nr_cpus; cpu++)
		pmu_gather(pmu, cpu, &whole->cpu[cpu]);
	for (int l = 0; l < NR_LEVELS; l++) {
		uint64_t *row;

		if (!pmu->options.caches.histogram[l])
			continue;
		row = must_allocate(pmu, total_sets(pmu, l), sizeof(*row));
		whole->set_misses[l] = row;
		for (unsigned int cpu = 0; cpu < region_set_rows(pmu, l); cpu++) {
			const struct cache *c = pmu->caches.cpu[cpu].at[l];

			if (!c)
				continue;
			memcpy(row, c->set_misses, nr_sets(pmu, cpu, l) * sizeof(*row));
			row += nr_sets(pmu, cpu, l);
		}
	}
}

void region_free(struct region *region)
{
	free(region->cpu);
	for (int l = 0; l < NR_LEVELS; l++)
		free(region->set_misses[l]);
	memset(region, 0, sizeof(*region));
}

void region_begin(struct pmu *pmu)
{
	struct regions *r = &pmu->regions;

	if (r->open)
		pmu_die(pmu, "region %u begins inside region %u: regions do not nest",
			r->nr_done + 1, r->nr_done);
	r->open = true;
	region_whole(pmu, &r->begin);
}

void region_end(struct pmu *pmu)
{
	struct regions *r = &pmu->regions;
	struct region *done;

	if (!r->open)
		pmu_die(pmu, "an end marker (hint #0x7f) after %u regions has no begin",
			r->nr_done);
	done = realloc(r->done, (r->nr_done + 1) * sizeof(*done));
	if (!done)
		pmu_die(pmu, "not enough memory for the counts of a region");
	r->done = done;
	done += r->nr_done++;
	region_whole(pmu, done);
	for (unsigned int cpu = 0; cpu < pmu->nr_cpus; cpu++)
		counts_subtract(&done->cpu[cpu], &r->begin.cpu[cpu]);
	for (int l = 0; l < NR_LEVELS; l++)
		for (uint64_t s = 0; done->set_misses[l] && s < total_sets(pmu, l); s++)
			done->set_misses[l][s] -= r->begin.set_misses[l][s];
	region_free(&r->begin);
	r->open = false;
}
