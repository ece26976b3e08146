// SPDX-License-Identifier: GPL-2.0
/*
 * How much memory is still free in huge blocks after programs have taken and freed it in
 * pieces of other sizes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "arch.h"
#include "hugepage.h"
#include "memory.h"
#include "region.h"
#include "result.h"

#define PIECES		64	/* mappings that come and go */
#define SOCKETS		32	/* with a message that nobody reads */
#define MESSAGE		32768	/* bytes: a buffer of order 3 */
#define FOLIO		16384
#define STEPS		1024
#define KEPT		8	/* of the pieces, one in so many stays */

/* Numerical Recipes' generator: the same steps in each run. */
static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

/* Sums the numbers behind @word in the lines of @path, or returns -errno. */
static int64_t sum_lines(const char *path, const char *word)
{
	unsigned long number;
	int64_t sum = 0;
	char line[512];
	FILE *file = fopen(path, "re");

	if (!file)
		return -errno;
	while (fgets(line, sizeof(line), file)) {
		const char *found = line + strspn(line, " ");

		if (!strncmp(found, word, strlen(word)) &&
		    sscanf(found + strlen(word), " %lu", &number) == 1)
			sum += number;
	}
	fclose(file);
	return sum;
}

/* Bytes that are free in blocks of a huge page and larger, or -errno. */
static int64_t free_in_huge_blocks(void)
{
	int64_t sum = 0;
	char line[512];
	FILE *file = fopen("/proc/buddyinfo", "re");

	if (!file)
		return -errno;
	while (fgets(line, sizeof(line), file)) {
		size_t bytes = page_size();
		char *word, *rest = strstr(line, "zone");

		/* "Node 0, zone   Normal   blocks of order 0, 1, ..." */
		strtok_r(rest ? rest : line, " \n", &rest);
		strtok_r(NULL, " \n", &rest);
		while ((word = strtok_r(NULL, " \n", &rest))) {
			if (bytes >= HUGEPAGE_BYTES)
				sum += strtoul(word, NULL, 10) * bytes;
			bytes *= 2;
		}
	}
	fclose(file);
	return sum;
}

/*
 * Takes and frees pieces and messages in turn. Returns 0 or a negative errno. Not inline:
 * of a region there is one end, and gcc would give each return its own.
 */
static noinline int mix(char **pieces, int (*sockets)[2], size_t piece)
{
	static char message[MESSAGE];
	uint32_t state = 1;

	for (int step = 0; step < STEPS; step++) {
		char **at = &pieces[next_random(&state) % PIECES];
		int *pair = sockets[next_random(&state) % SOCKETS];

		if (*at) {
			munmap(*at, piece);
			*at = NULL;
		} else {
			*at = mmap(NULL, piece, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			if (*at == MAP_FAILED)
				return -errno;
			for (size_t byte = 0; byte < piece; byte += FOLIO)
				(*at)[byte] = 1;
		}
		if (step % 16)
			continue;
		if (pair[0]) {
			close(pair[0]);
			close(pair[1]);
			pair[0] = 0;
		} else if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair) ||
			   send(pair[0], message, sizeof(message), 0) < 0) {
			return -errno;
		}
	}
	return 0;
}

static enum status measure(struct run *run)
{
	const size_t size = param_number(run, "size");
	static int sockets[SOCKETS][2];
	static char *pieces[PIECES];
	int error;

	memset(sockets, 0, sizeof(sockets));
	memset(pieces, 0, sizeof(pieces));
	region_begin(run, "mix");
	marker_begin();
	error = mix(pieces, sockets, size / PIECES);
	marker_end();
	region_end(run);
	if (error)
		return wrong(run, "memory or a socket was refused (%s)", strerror(-error));
	for (size_t place = 0; place < PIECES; place++)
		if (pieces[place] && place % KEPT)
			munmap(pieces[place], size / PIECES);
	result_add(run, "listed_pages", sum_lines("/proc/zoneinfo", "count:"));
	result_add(run, "free_in_huge_blocks", free_in_huge_blocks());
	region_report(run);
	for (size_t place = 0; place < PIECES; place += KEPT)
		if (pieces[place])
			munmap(pieces[place], size / PIECES);
	for (size_t place = 0; place < SOCKETS; place++)
		if (sockets[place][0]) {
			close(sockets[place][0]);
			close(sockets[place][1]);
		}
	return STATUS_OK;
}

static const struct param params[] = {
	{
		.name = "size", .type = PARAM_SIZE, .def = "1073741824", .min = 1ul << 27,
		.help = "of all pieces together",
	},
	{ }
};

static const struct metric metrics[] = {
	{ "listed_pages", "pages", "free, on the lists of the CPUs, when the load has ended" },
	{ "free_in_huge_blocks", "bytes", "free then in blocks of 2 MiB and more" },
	{ }
};

static const struct experiment fragments = {
	.name = "fragments",
	.summary = "free memory in huge blocks after a mixed load",
	.detail =
"Maps 64 pieces, writes to each 16 KiB of them and unmaps them in a fixed random\n"
"order, 1,024 steps, while sockets with unread messages of 32 KiB come and go; then\n"
"unmaps seven pieces of eight, and reads what is free.",
	.example = "--size 256M",
	.params = params,
	.metrics = metrics,
	.measure = measure,
};

EXPERIMENT(fragments);
