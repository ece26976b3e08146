// SPDX-License-Identifier: GPL-2.0
/*
 * Finds the word that was probably meant, by the smallest edit distance.
 */
#include <stddef.h>
#include <string.h>

#include "nearest.h"

#define LONGEST	64

/* Levenshtein distance, computed with two rows. */
static size_t distance(const char *a, const char *b)
{
	size_t row[LONGEST + 1], la = strlen(a), lb = strlen(b);

	if (la > LONGEST || lb > LONGEST)
		return LONGEST;
	for (size_t j = 0; j <= lb; j++)
		row[j] = j;
	for (size_t i = 1; i <= la; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= lb; j++) {
			size_t best = diagonal + (a[i - 1] != b[j - 1]);

			diagonal = row[j];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
		}
	}
	return row[lb];
}

const char *nearest_word(const char *word, const char * const *candidates)
{
	/* With more wrong letters than a third plus one, it is another word. */
	size_t best = strlen(word) / 3 + 1;
	const char *found = NULL;

	for (; *candidates; candidates++) {
		size_t d = distance(word, *candidates);

		if (d <= best && !(found && d == best)) {
			best = d;
			found = *candidates;
		}
	}
	return found;
}
