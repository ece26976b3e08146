// SPDX-License-Identifier: GPL-2.0
/*
 *	compare SEED ACCESSES
 *
 * Runs random traces through pmu/'s model and the reference, over every policy and
 * many shapes, until at least ACCESSES were made; stops at the first difference
 * with status 1. Prints shapes and accesses.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hierarchy.h"
#include "reference.h"

#define MAX_CPUS	4
#define PER_SHAPE	40000

static uint64_t state;

/* splitmix64 */
static uint64_t draw(uint64_t below)
{
	uint64_t z = state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return (z ^ (z >> 31)) % below;
}

static const uint32_t ways_of[] = { 1, 2, 3, 4, 5, 8, 12, 16, 20, 64 };
static const uint32_t tree_ways_of[] = { 1, 2, 4, 8, 16, 32, 64 };

#define PICK(array) array[draw(sizeof(array) / sizeof(array[0]))]

static struct level_setup draw_level(enum cache_policy policy, uint32_t line,
				     uint32_t most_sets)
{
	struct level_setup l = { .present = true };
	struct cache_geometry *g = &l.geometry;

	g->policy = policy;
	g->ways = policy == CACHE_PLRU ? PICK(tree_ways_of) : PICK(ways_of);
	g->line = line;
	g->size = ((uint64_t)g->ways * line) << draw(most_sets);
	return l;
}

/* A machine: each level is present or absent; lower levels have no shorter lines. */
static void draw_machine(struct hierarchy_setup *setup, struct ref_shape (*ref)[REF_LEVELS],
			 unsigned int number)
{
	bool has[NR_LEVELS] = { draw(2), true, draw(4), draw(2) };
	uint32_t line[NR_LEVELS];

	setup->nr_cpus = 1 + number % MAX_CPUS;
	line[LEVEL_L1D] = line[LEVEL_L1I] = 16u << draw(5);
	line[LEVEL_L2] = line[LEVEL_L1D] << draw(2);
	line[LEVEL_L3] = line[LEVEL_L2] << draw(2);
	for (unsigned int cpu = 0; cpu < setup->nr_cpus; cpu++) {
		for (int l = 0; l < NR_LEVELS; l++) {
			struct level_setup *level = &setup->cpu[cpu][l];
			/* Each policy at each level, independent of the other levels. */
			enum cache_policy policy = (number / MAX_CPUS / (l + 1) + l) % 3;

			*level = has[l] ? draw_level(policy, line[l], 3 + l) :
				(struct level_setup){ .present = false };
			if (l == LEVEL_L3 && cpu)
				*level = setup->cpu[0][l];
			setup->histogram[l] = true;
			ref[cpu][l] = (struct ref_shape){
				.present = has[l],
				.size = level->geometry.size,
				.ways = level->geometry.ways,
				.line = level->geometry.line,
				.policy = level->geometry.policy,
			};
		}
	}
}

static void describe(const struct hierarchy_setup *setup)
{
	for (unsigned int cpu = 0; cpu < setup->nr_cpus; cpu++)
		for (int l = 0; l < NR_LEVELS; l++)
			if (setup->cpu[cpu][l].present)
				fprintf(stderr, "CPU %u %s: %" PRIu64 " bytes, %u ways, line %u, policy %d\n",
					cpu, level_name(l), setup->cpu[cpu][l].geometry.size,
					setup->cpu[cpu][l].geometry.ways,
					setup->cpu[cpu][l].geometry.line,
					setup->cpu[cpu][l].geometry.policy);
}

static bool same(const struct hierarchy *h, const struct ref_model *m)
{
	bool same = true;

	for (unsigned int cpu = 0; cpu < h->nr_cpus; cpu++) {
		for (int l = 0; l < NR_LEVELS; l++) {
			const struct cache *c = h->cpu[cpu].at[l];

			for (int who = 0; who < NR_PRIVS; who++) {
				struct ref_counts r = ref_counts(m, cpu, who, l);
				const struct level_counts *n = &h->cpu[cpu].counts[who][l];

				if (r.accesses == n->accesses && r.misses == n->misses &&
				    r.writebacks == n->writebacks)
					continue;
				fprintf(stderr, "CPU %u %s: accesses %" PRIu64 " (reference %" PRIu64
					"), misses %" PRIu64 " (%" PRIu64 "), write-backs %" PRIu64
					" (%" PRIu64 ")\n", cpu, level_name(l),
					n->accesses, r.accesses, n->misses, r.misses,
					n->writebacks, r.writebacks);
				same = false;
			}
			for (uint64_t s = 0; c && s <= c->set_mask; s++) {
				if (c->set_misses[s] == ref_set_misses(m, cpu, l, s))
					continue;
				fprintf(stderr, "CPU %u %s: misses of set %" PRIu64 " differ\n",
					cpu, level_name(l), s);
				same = false;
			}
		}
	}
	return same;
}

/* Mostly near addresses that all CPUs share, so that sets fill and lines move. */
static uint64_t draw_address(void)
{
	uint64_t hot = draw(4);

	if (hot == 0)
		return 0x40000000 + draw(1 << 20);
	if (hot == 1)
		return 0x40000000 + draw(64) * 4096 + draw(2) * 64;
	return 0x40000000 + draw(1 << 13);
}

static bool run_shape(struct hierarchy_setup *setup, struct ref_shape (*ref)[REF_LEVELS])
{
	char error[256];
	struct hierarchy h;
	struct ref_model *m;
	bool fits;

	if (!hierarchy_init(&h, setup, error, sizeof(error))) {
		fprintf(stderr, "%s\n", error);
		return false;
	}
	m = ref_new(setup->nr_cpus, ref, setup->seed);
	for (int i = 0; i < PER_SHAPE; i++) {
		unsigned int cpu = draw(setup->nr_cpus);
		uint64_t pa = draw_address();
		int who = draw(2);

		if (setup->cpu[cpu][LEVEL_L1I].present && draw(4) == 0) {
			hierarchy_fetch(&h, cpu, pa, who);
			ref_fetch(m, cpu, pa, who);
		} else {
			bool write = draw(3) == 0;

			hierarchy_data(&h, cpu, pa, write, who);
			ref_data(m, cpu, pa, write, who);
		}
	}
	fits = same(&h, m);
	hierarchy_destroy(&h);
	ref_free(m);
	return fits;
}

int main(int argc, char **argv)
{
	struct level_setup levels[MAX_CPUS][NR_LEVELS];
	struct ref_shape ref[MAX_CPUS][REF_LEVELS];
	struct hierarchy_setup setup = { .cpu = levels };
	uint64_t wanted, made = 0;
	unsigned int shapes = 0;

	if (argc != 3) {
		fprintf(stderr, "usage: compare SEED ACCESSES\n");
		return 2;
	}
	state = strtoull(argv[1], NULL, 10);
	wanted = strtoull(argv[2], NULL, 10);
	for (; made < wanted; made += PER_SHAPE, shapes++) {
		draw_machine(&setup, ref, shapes);
		setup.seed = shapes;
		if (!run_shape(&setup, ref)) {
			fprintf(stderr, "shape %u differs:\n", shapes);
			describe(&setup);
			return 1;
		}
	}
	printf("%u shapes, %" PRIu64 " accesses\n", shapes, made);
	return 0;
}
