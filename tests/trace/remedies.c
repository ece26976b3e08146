// SPDX-License-Identifier: GPL-2.0
/*
 * A program whose faults a remedy removes: "keep" takes and frees memory again and again,
 * "huge" writes a large block once. "base" as the second word: without huge pages.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

int main(int argc, char **argv)
{
	/* malloc(3) of glibc maps what is larger than 32 MiB, whatever was freed before. */
	const int rounds = argc > 1 && !strcmp(argv[1], "keep") ? 4 : 1;
	const size_t size = 64 << 20;

	if (argc > 2)
		prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	for (int round = 0; round < rounds; round++) {
		char *volatile some = malloc(size);

		if (!some)
			return 1;
		memset(some, 1, size);
		free(some);
	}
	return 0;
}
