// SPDX-License-Identifier: GPL-2.0
#include "regions.h"

#include <stdlib.h>
#include <string.h>

static void add(struct counts *to, const struct counts *from)
{
	uint64_t *t = (uint64_t *)to;
	const uint64_t *f = (const uint64_t *)from;

	for (size_t i = 0; i < NR_COUNTS; i++)
		t[i] += f[i];
}

static void subtract(struct counts *to, const struct counts *from)
{
	uint64_t *t = (uint64_t *)to;
	const uint64_t *f = (const uint64_t *)from;

	for (size_t i = 0; i < NR_COUNTS; i++)
		t[i] -= f[i];
}

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

/* CPUs may differ: each row has the length of its CPU's cache. */
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

/* The number of counters of functions.h. */
static size_t nr_function_counts(const struct pmu *pmu)
{
	return function_counter(pmu->tallies.functions.nr, 0);
}

static void take_functions(const struct pmu *pmu, struct region *region)
{
	const struct functions *f = &pmu->tallies.functions;
	size_t size = nr_function_counts(pmu) * sizeof(*region->functions);

	if (!functions_wanted(f))
		return;
	region->functions = must_allocate(pmu, 1, size);
	memcpy(region->functions, counters_row(&f->counters, 0), size);
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
	take_functions(pmu, whole);
}

void region_free(struct region *region)
{
	free(region->cpu);
	for (int l = 0; l < NR_LEVELS; l++)
		free(region->set_misses[l]);
	free(region->functions);
	free(region->calls);
	memset(region, 0, sizeof(*region));
}

void region_sum(const struct pmu *pmu, const struct region *region, struct counts *sum)
{
	memset(sum, 0, sizeof(*sum));
	for (unsigned int cpu = 0; cpu < pmu->nr_cpus; cpu++)
		add(sum, &region->cpu[cpu]);
}

static void region_begin(struct regions *r)
{
	if (r->open)
		pmu_die(r->pmu, "region %u begins inside region %u: regions do not nest",
			r->nr_done + 1, r->nr_done);
	r->open = true;
	region_whole(r->pmu, &r->begin);
	stacks_settle(r->stacks);
	call_tree_restart(&r->stacks->tree);
}

static void region_end(struct regions *r)
{
	const struct pmu *pmu = r->pmu;
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
		subtract(&done->cpu[cpu], &r->begin.cpu[cpu]);
	for (int l = 0; l < NR_LEVELS; l++)
		for (uint64_t s = 0; done->set_misses[l] && s < total_sets(pmu, l); s++)
			done->set_misses[l][s] -= r->begin.set_misses[l][s];
	for (size_t n = 0; done->functions && n < nr_function_counts(pmu); n++)
		done->functions[n] -= r->begin.functions[n];
	if (done->functions) {
		stacks_settle(r->stacks);
		done->calls = call_tree_take(&r->stacks->tree, &done->nr_calls);
		done->lost = r->stacks->lost;
	}
	region_free(&r->begin);
	r->open = false;
}

static void count_marker(struct pmu *pmu, unsigned int cpu, enum privilege priv)
{
	pmu->cpu[cpu].counts.event[priv][EV_INSTRUCTIONS]++;
}

/* @udata of markers is the privilege. */
static void on_begin(unsigned int cpu, void *udata)
{
	struct regions *r = userdata_context(udata);

	pmu_lock(r->pmu);
	count_marker(r->pmu, cpu, userdata_number(udata));
	region_begin(r);
	pmu_unlock(r->pmu);
}

static void on_end(unsigned int cpu, void *udata)
{
	struct regions *r = userdata_context(udata);

	pmu_lock(r->pmu);
	region_end(r);
	count_marker(r->pmu, cpu, userdata_number(udata));
	pmu_unlock(r->pmu);
}

void regions_watch(struct regions *r, struct qemu_plugin_insn *insn,
		   enum insn_kind kind, enum privilege priv)
{
	qemu_plugin_register_vcpu_insn_exec_cb(insn, kind == INSN_REGION_BEGIN ?
					       on_begin : on_end,
					       QEMU_PLUGIN_CB_NO_REGS, userdata(r, priv));
}
