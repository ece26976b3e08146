// SPDX-License-Identifier: GPL-2.0
/* Fuzzes ftbench's options, for libFuzzer: the input has the words, one a line. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "catalogue.h"
#include "options.h"

#define MOST_WORDS	32

static const struct experiment *find(const char *name)
{
	static const struct experiment **all;

	if (!all)
		all = catalogue_experiments();
	for (size_t i = 0; all[i]; i++)
		if (!strcmp(all[i]->name, name))
			return all[i];
	return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *rest = text, *words[MOST_WORDS + 1];
	struct run run = { };
	int nr = 0;

	memcpy(text, data, size);
	text[size] = '\0';
	while (nr < MOST_WORDS && (words[nr] = strsep(&rest, "\n")))
		nr++;
	words[nr] = NULL;
	run.experiment = nr ? find(words[0]) : NULL;
	if (run.experiment)
		options_parse(&run, nr - 1, words + 1);
	free(text);
	return 0;
}
