// SPDX-License-Identifier: GPL-2.0
#include "reference.h"

#include <stdlib.h>

enum { L1I, L1D, L2, L3 };

struct record {
	bool valid, dirty;
	uint64_t number;	/* address / line */
	uint64_t used;		/* time of the last use */
};

struct set {
	struct record *records;
	bool *nodes;		/* heap order from 1; true: the victim is on the right */
	uint64_t misses;
};

struct ref_cache {
	struct ref_shape shape;
	uint64_t nr_sets, clock, prng;
	struct set *sets;
};

struct ref_cpu {
	struct ref_cache *caches[REF_LEVELS];
	struct ref_counts counts[2][REF_LEVELS];
};

struct ref_model {
	int cpus;
	struct ref_cpu *cpu;
};

static struct ref_cache *new_cache(const struct ref_shape *shape, uint64_t seed)
{
	struct ref_cache *c = calloc(1, sizeof(*c));

	c->shape = *shape;
	c->nr_sets = shape->size / (shape->ways * shape->line);
	c->prng = seed * 11400714819323198485u;
	if (c->prng == 0)
		c->prng = 1;
	c->sets = calloc(c->nr_sets, sizeof(*c->sets));
	for (uint64_t i = 0; i < c->nr_sets; i++) {
		c->sets[i].records = calloc(shape->ways, sizeof(struct record));
		c->sets[i].nodes = calloc(shape->ways, sizeof(bool));
	}
	return c;
}

struct ref_model *ref_new(int cpus, struct ref_shape (*shapes)[REF_LEVELS],
			  uint64_t seed)
{
	struct ref_model *m = calloc(1, sizeof(*m));

	m->cpus = cpus;
	m->cpu = calloc(cpus, sizeof(*m->cpu));
	for (int cpu = 0; cpu < cpus; cpu++) {
		for (int level = 0; level < REF_LEVELS; level++) {
			if (level == L3 && cpu > 0)
				m->cpu[cpu].caches[L3] = m->cpu[0].caches[L3];
			else if (shapes[cpu][level].present)
				m->cpu[cpu].caches[level] = new_cache(&shapes[cpu][level],
					seed + cpu * REF_LEVELS + level);
		}
	}
	return m;
}

static void free_cache(struct ref_cache *c)
{
	if (!c)
		return;
	for (uint64_t i = 0; i < c->nr_sets; i++) {
		free(c->sets[i].records);
		free(c->sets[i].nodes);
	}
	free(c->sets);
	free(c);
}

void ref_free(struct ref_model *m)
{
	free_cache(m->cpu[0].caches[L3]);
	for (int cpu = 0; cpu < m->cpus; cpu++)
		for (int level = 0; level < L3; level++)
			free_cache(m->cpu[cpu].caches[level]);
	free(m->cpu);
	free(m);
}

static struct set *set_of(const struct ref_cache *c, uint64_t pa)
{
	return &c->sets[pa / c->shape.line % c->nr_sets];
}

static struct record *look_up(const struct ref_cache *c, uint64_t pa)
{
	struct set *set = set_of(c, pa);

	for (uint64_t way = 0; way < c->shape.ways; way++)
		if (set->records[way].valid &&
		    set->records[way].number == pa / c->shape.line)
			return &set->records[way];
	return NULL;
}

/* From the leaf up: every node on the path points away from the leaf. */
static void use(struct ref_cache *c, uint64_t pa, struct record *r)
{
	struct set *set = set_of(c, pa);

	r->used = ++c->clock;
	if (c->shape.policy != 1)
		return;
	for (uint64_t at = c->shape.ways + (r - set->records); at > 1; at /= 2)
		set->nodes[at / 2] = at % 2 == 0;
}

static struct record *choose(struct ref_cache *c, uint64_t pa)
{
	struct set *set = set_of(c, pa);
	uint64_t oldest = 0, at = 1;

	for (uint64_t way = 0; way < c->shape.ways; way++)
		if (!set->records[way].valid)
			return &set->records[way];
	switch (c->shape.policy) {
	case 1:
		while (at < c->shape.ways)
			at = 2 * at + set->nodes[at];
		return &set->records[at - c->shape.ways];
	case 2:
		/* xorshift64*, by its shifts 12, 25, 27 and its multiplier */
		c->prng ^= c->prng / 4096;
		c->prng ^= c->prng * 33554432;
		c->prng ^= c->prng / 134217728;
		at = c->prng * 2685821657736338717u / 4294967296;
		return &set->records[at * c->shape.ways / 4294967296];
	}
	for (uint64_t way = 1; way < c->shape.ways; way++)
		if (set->records[way].used < set->records[oldest].used)
			oldest = way;
	return &set->records[oldest];
}

static int next_level(const struct ref_cpu *p, int level)
{
	for (level = level < L2 ? L2 : level + 1; level < REF_LEVELS; level++)
		if (p->caches[level])
			return level;
	return -1;
}

static void write_back(struct ref_cpu *p, int from, uint64_t pa, int who)
{
	int level = next_level(p, from);
	struct ref_cache *c;
	struct record *r;
	struct record left;

	p->counts[who][from].writebacks++;
	if (level < 0)
		return;
	c = p->caches[level];
	r = look_up(c, pa);
	if (r) {
		r->dirty = true;
		use(c, pa, r);
		return;
	}
	r = choose(c, pa);
	left = *r;
	*r = (struct record){ .valid = true, .dirty = true, .number = pa / c->shape.line };
	use(c, pa, r);
	if (left.valid && left.dirty)
		write_back(p, level, left.number * c->shape.line, who);
}

/* Makes the line clean everywhere except in @except; with @remove, removes it. */
static void others(struct ref_model *m, int except, uint64_t pa, bool remove, int who)
{
	for (int i = 0; i < m->cpus; i++) {
		struct ref_cpu *p = &m->cpu[i];
		struct record *r1, *r2;
		bool dirty1, dirty2;

		if (i == except)
			continue;
		r1 = p->caches[L1D] ? look_up(p->caches[L1D], pa) : NULL;
		r2 = p->caches[L2] ? look_up(p->caches[L2], pa) : NULL;
		dirty1 = r1 && r1->dirty;
		dirty2 = r2 && r2->dirty;
		if (r1) {
			r1->dirty = false;
			r1->valid = r1->valid && !remove;
		}
		if (r2) {
			r2->dirty = false;
			r2->valid = r2->valid && !remove;
		}
		/* The line is written back from the last private level, once for both. */
		if (p->caches[L2]) {
			if (dirty1)
				p->counts[who][L1D].writebacks++;
			if (dirty1 || dirty2)
				write_back(p, L2, pa / p->caches[L2]->shape.line *
					   p->caches[L2]->shape.line, who);
		} else if (dirty1) {
			write_back(p, L1D, pa, who);
		}
	}
}

static void read_line(struct ref_model *m, int cpu, int level, uint64_t pa,
		      bool snooped, int who);

/* A miss: reads the level below, then replaces the victim. */
static void bring_in(struct ref_model *m, int cpu, int level, uint64_t pa, bool dirty,
		     bool snooped, int who)
{
	struct ref_cpu *p = &m->cpu[cpu];
	struct ref_cache *c = p->caches[level];
	struct record *r, left;

	p->counts[who][level].misses++;
	set_of(c, pa)->misses++;
	read_line(m, cpu, next_level(p, level), pa, snooped || level == L3, who);
	r = choose(c, pa);
	left = *r;
	*r = (struct record){ .valid = true, .dirty = dirty, .number = pa / c->shape.line };
	use(c, pa, r);
	if (left.valid && left.dirty)
		write_back(p, level, left.number * c->shape.line, who);
}

static void read_line(struct ref_model *m, int cpu, int level, uint64_t pa,
		      bool snooped, int who)
{
	struct ref_cpu *p = &m->cpu[cpu];
	struct record *r;

	if ((level < 0 || level == L3) && !snooped)
		others(m, cpu, pa, false, who);
	if (level < 0)
		return;
	p->counts[who][level].accesses++;
	r = look_up(p->caches[level], pa);
	if (r)
		use(p->caches[level], pa, r);
	else
		bring_in(m, cpu, level, pa, false, snooped, who);
}

void ref_data(struct ref_model *m, int cpu, uint64_t pa, bool write, int who)
{
	struct ref_cpu *p = &m->cpu[cpu];
	struct record *r = look_up(p->caches[L1D], pa);

	p->counts[who][L1D].accesses++;
	if (r) {
		use(p->caches[L1D], pa, r);
		if (write && !r->dirty)
			others(m, cpu, pa, true, who);
		r->dirty |= write;
		return;
	}
	if (write)
		others(m, cpu, pa, true, who);
	bring_in(m, cpu, L1D, pa, write, write, who);
}

void ref_fetch(struct ref_model *m, int cpu, uint64_t pa, int who)
{
	read_line(m, cpu, L1I, pa, false, who);
}

struct ref_counts ref_counts(const struct ref_model *m, int cpu, int who, int level)
{
	return m->cpu[cpu].counts[who][level];
}

uint64_t ref_set_misses(const struct ref_model *m, int cpu, int level, uint64_t set)
{
	return m->cpu[cpu].caches[level]->sets[set].misses;
}
