// SPDX-License-Identifier: GPL-2.0
/*
 * Programs that people asked about, for predicted.toml:
 *
 *   loop SIZE ROUNDS		malloc(3), each page written, free(3)
 *   calloc SIZE ROUNDS		the same by calloc(3), as Rust's vec![0; n]
 *   mixed ROUNDS		64 blocks at a time, of 16 KiB to 4 MiB
 *   serve CHILDREN SIZE	a server that forks: each child writes a quarter of SIZE
 */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE		4096
#define BLOCKS		64

static char *touched(char *block, size_t size)
{
	volatile char *pages = block;

	if (!block)
		exit(1);
	for (size_t i = 0; i < size; i += PAGE)
		pages[i] = 1;
	return block;
}

static void mix(unsigned int rounds)
{
	char *blocks[BLOCKS] = { NULL };
	unsigned int random = 1;

	for (unsigned int i = 0; i < rounds; i++) {
		char **block = &blocks[i % BLOCKS];
		size_t size;

		random = random * 1103515245 + 12345;
		size = (size_t)(16 << 10) << (random >> 16) % 9;
		free(*block);
		*block = touched(malloc(size), size);
	}
}

static void serve(unsigned int children, size_t size)
{
	char *state = touched(malloc(size), size);

	while (children--) {
		if (!fork()) {
			touched(state + size / 2, size / 4);
			_exit(0);
		}
		/* As a server does between requests. */
		touched(state, size / 16);
		wait(NULL);
	}
}

int main(int argc, char **argv)
{
	size_t first = argc > 2 ? strtoul(argv[2], NULL, 0) : 0;
	size_t second = argc > 3 ? strtoul(argv[3], NULL, 0) : 0;

	if (argc < 3)
		return 2;
	if (!strcmp(argv[1], "mixed"))
		mix(first);
	else if (!strcmp(argv[1], "serve"))
		serve(first, second);
	else
		for (size_t i = 0; i < second; i++)
			free(touched(*argv[1] == 'c' ? calloc(1, first) : malloc(first), first));
	return 0;
}
