// SPDX-License-Identifier: GPL-2.0
/*
 * A program whose faults a remedy removes: "keep" takes and frees memory again and again,
 * "read" lets read(2) fill such memory, "huge" writes a large block once, "heap" many small
 * ones. "base" as the second word: without huge pages.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	/* malloc(3) of glibc maps what is larger than 32 MiB, whatever was freed before. */
	const int small = argc > 1 && !strcmp(argv[1], "heap");
	const int rounds = argc > 1 && strcmp(argv[1], "huge") && !small ? 4 : 1;
	const int zeros = argc > 1 && !strcmp(argv[1], "read") ? open("/dev/zero", O_RDONLY) : -1;
	const size_t size = 64 << 20;

	if (argc > 2)
		prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	for (size_t given = 0; small && given < size; given += 4000) {
		char *volatile some = malloc(4000);

		if (!some)
			return 1;
		memset(some, 1, 4000);
	}
	if (small)
		return 0;
	for (int round = 0; round < rounds; round++) {
		char *volatile some = malloc(size);

		if (!some)
			return 1;
		if (zeros < 0)
			memset(some, 1, size);
		else if (read(zeros, some, size) != (ssize_t)size)
			return 1;
		free(some);
	}
	return 0;
}
