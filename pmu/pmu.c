// SPDX-License-Identifier: GPL-2.0
#include "pmu.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool init_caches(struct pmu *pmu, char *error, size_t error_size)
{
	uint64_t shortest = CACHE_MAX_LINE;

	if (!hierarchy_init(&pmu->caches, &pmu->options.caches, error, error_size))
		return false;
	for (unsigned int cpu = 0; cpu < pmu->nr_cpus; cpu++) {
		const struct cpu_caches *c = &pmu->caches.cpu[cpu];

		pmu->has_l1i |= !!c->at[LEVEL_L1I];
		pmu->has_l1d |= !!c->at[LEVEL_L1D];
		if (!c->at[LEVEL_L1I] != !pmu->has_l1i || !c->at[LEVEL_L1D] != !pmu->has_l1d) {
			snprintf(error, error_size,
				 "CPU %u and those before it must all have an l1i, or none, and likewise an l1d",
				 cpu);
			return false;
		}
		for (int l = LEVEL_L1I; l <= LEVEL_L1D; l++)
			if (c->at[l] && c->at[l]->geometry.line < shortest)
				shortest = c->at[l]->geometry.line;
	}
	pmu->line_mask = shortest - 1;
	pmu->line_shift = __builtin_ctzll(shortest);
	return true;
}

bool pmu_init(struct pmu *pmu, unsigned int nr_cpus, char *error, size_t error_size)
{
	pmu->nr_cpus = nr_cpus;
	if (!init_caches(pmu, error, error_size))
		return false;
	if (posix_memalign((void **)&pmu->cpu, FT_CACHE_LINE,
			   nr_cpus * sizeof(*pmu->cpu)) ||
	    !tally_init(&pmu->tallies, nr_cpus)) {
		snprintf(error, error_size, "not enough memory");
		return false;
	}
	if (pmu->options.profile && nr_cpus > 1) {
		snprintf(error, error_size, "profile=: the guest must have one CPU");
		return false;
	}
	if (pmu->options.profile &&
	    !functions_read(&pmu->tallies.functions, pmu->options.profile, error, error_size))
		return false;
	memset(pmu->cpu, 0, nr_cpus * sizeof(*pmu->cpu));
	for (unsigned int cpu = 0; cpu < nr_cpus; cpu++) {
		translations_drop(&pmu->cpu[cpu].translations);
		recent_lines_drop(&pmu->recent[cpu]);
		pmu->recent[cpu].shift = pmu->line_shift;
		for (int i = 0; i < NR_RECENT_FETCHES; i++)
			pmu->fetched[cpu].line[i].start = NO_RECENT_LINE;
	}
	pthread_mutex_init(&pmu->lock, NULL);
	return true;
}

void pmu_die(const struct pmu *pmu, const char *format, ...)
{
	struct stat out;
	va_list args;

	fputs("ftpmu: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	/* Not for a device, such as /dev/stdout. */
	if (!lstat(pmu->options.out, &out) && S_ISREG(out.st_mode))
		unlink(pmu->options.out);
	_exit(1);
}

void pmu_gather(const struct pmu *pmu, unsigned int cpu, struct counts *counts)
{
	*counts = pmu->cpu[cpu].counts;
	tally_gather(&pmu->tallies, cpu, counts);
	memcpy(counts->level, pmu->caches.cpu[cpu].counts, sizeof(counts->level));
	for (int priv = 0; priv < NR_PRIVS; priv++) {
		counts->level[priv][LEVEL_L1I].accesses += pmu->fetched[cpu].hits[priv];
		for (int i = 0; i < NR_HIT_COUNTERS; i++)
			counts->level[priv][LEVEL_L1D].accesses +=
				pmu->recent[cpu].hits[i][priv];
	}
}
