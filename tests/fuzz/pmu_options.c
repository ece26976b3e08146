// SPDX-License-Identifier: GPL-2.0
/* Fuzzes the PMU's options and its caches, for libFuzzer: the input has the options, one a line. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"

#define MOST_OPTIONS	32
/* Of all caches together, so that they are made quickly. */
#define MOST_BYTES	(1 << 20)
#define NR_CPUS		2

static bool is_small(const struct hierarchy_setup *setup)
{
	uint64_t sum = 0;

	for (unsigned int cpu = 0; cpu < setup->nr_cpus; cpu++)
		for (int l = 0; l < NR_LEVELS; l++) {
			if (setup->cpu[cpu][l].geometry.size > MOST_BYTES)
				return false;
			sum += setup->cpu[cpu][l].geometry.size;
		}
	return sum <= MOST_BYTES;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *rest = text, *words[MOST_OPTIONS];
	struct hierarchy caches;
	struct options options;
	char error[256];
	int nr = 0;

	memcpy(text, data, size);
	text[size] = '\0';
	while (nr < MOST_OPTIONS && (words[nr] = strsep(&rest, "\n")))
		nr++;
	if (options_parse(&options, NR_CPUS, nr, words, error, sizeof(error)) &&
	    is_small(&options.caches) &&
	    hierarchy_init(&caches, &options.caches, error, sizeof(error))) {
		for (size_t i = 0; i < size; i++)
			if (caches.cpu[data[i] % NR_CPUS].at[LEVEL_L1D])
				hierarchy_data(&caches, data[i] % NR_CPUS, data[i] * 64ul,
					       data[i] & 64, PRIV_USER);
		hierarchy_destroy(&caches);
	}
	free(options.caches.cpu);
	free(text);
	return 0;
}
