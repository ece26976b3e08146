// SPDX-License-Identifier: GPL-2.0
/*
 *	trace CPUS OPTION... < ACCESSES
 *
 * Drives pmu/'s model by hand: the options are the plugin's, each line of input is
 * "r CPU ADDRESS" (read), "w ..." (write) or "f ..." (fetch), addresses in hex.
 * Prints "CPU LEVEL ACCESSES MISSES WRITEBACKS" for each cache, and for levels with
 * a histogram "CPU LEVEL set SET MISSES" for each set that missed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "options.h"

static void print(const struct hierarchy *h)
{
	for (unsigned int cpu = 0; cpu < h->nr_cpus; cpu++) {
		for (int l = 0; l < NR_LEVELS; l++) {
			const struct cache *c = h->cpu[cpu].at[l];
			const struct level_counts *n = &h->cpu[cpu].counts[PRIV_USER][l];

			if (!c)
				continue;
			printf("%u %s %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", cpu,
			       level_name(l), n->accesses, n->misses, n->writebacks);
			for (uint64_t s = 0; c->set_misses && s <= c->set_mask; s++)
				if (c->set_misses[s])
					printf("%u %s set %" PRIu64 " %" PRIu64 "\n", cpu,
					       level_name(l), s, c->set_misses[s]);
		}
	}
}

int main(int argc, char **argv)
{
	struct options options;
	struct hierarchy h;
	char error[256];
	unsigned int cpu;
	uint64_t pa;
	char what;

	if (argc < 2)
		return 2;
	if (!options_parse(&options, atoi(argv[1]), argc - 2, argv + 2, error, sizeof(error)) ||
	    !hierarchy_init(&h, &options.caches, error, sizeof(error))) {
		fprintf(stderr, "%s\n", error);
		return 2;
	}
	while (scanf(" %c %u %" SCNx64, &what, &cpu, &pa) == 3) {
		if (what == 'f')
			hierarchy_fetch(&h, cpu, pa, PRIV_USER);
		else
			hierarchy_data(&h, cpu, pa, what == 'w', PRIV_USER);
	}
	print(&h);
	return 0;
}
