// SPDX-License-Identifier: GPL-2.0
/*
 * A program whose faults a remedy removes: "keep" takes and frees memory again and again,
 * "elsewhere" at other addresses each time, "read" lets read(2) fill such memory, "huge" writes a
 * large block once, "heap" many small ones. "trim" takes and frees small blocks, "thread" does so
 * in a thread, "maps" does not ask malloc(3), "grow" lets realloc(3) move a block and writes what
 * is new of it. "stack" writes 4 MiB of a thread's stack; "bare" as the second word: without a
 * guard. "base": without huge pages, which it forbids for all its memory. A third word and more
 * are executed instead.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define ROUNDS	4
#define BLOCKS	1024

/* Each block is so small that a heap has it, all of them so large that it shrinks */
static void *small_blocks(void *unused)
{
	char *volatile some[BLOCKS];

	for (int round = 0; round < ROUNDS; round++) {
		for (int n = 0; n < BLOCKS; n++) {
			some[n] = malloc(32000);
			if (!some[n])
				_exit(1);
			memset(some[n], 1, 32000);
		}
		for (int n = 0; n < BLOCKS; n++)
			free(some[n]);
	}
	return unused;
}

static void *deep(void *unused)
{
	volatile char some[4 << 20];

	for (size_t at = sizeof(some); at; at -= 4096)
		some[at - 1] = 1;
	return unused;
}

static int in_thread(void *(*work)(void *), int guarded)
{
	pthread_attr_t attributes;
	pthread_t thread;

	return pthread_attr_init(&attributes) ||
	       (!guarded && pthread_attr_setguardsize(&attributes, 0)) ||
	       pthread_create(&thread, &attributes, work, NULL) || pthread_join(thread, NULL);
}

/* An allocator beside malloc(3): its mappings may be merged with those of that */
static int maps(size_t size)
{
	for (int round = 0; round < ROUNDS; round++) {
		char *const own = mmap(NULL, size, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		char *volatile other;

		if (own == MAP_FAILED)
			return 1;
		/* glibc's code touches it first, as it does malloc(3)'s */
		memset(own, 1, size);
		other = malloc(size);
		if (!other)
			return 1;
		memset(other, 1, size);
		free(other);
		munmap(own, size);
	}
	return 0;
}

/* mremap(2) moves a block that is so large, and no record says where */
static int grow(size_t size)
{
	size_t written = 0;
	char *volatile some = NULL;

	for (size_t given = 1 << 20; given <= size; given *= 2) {
		some = realloc(some, given);
		if (!some)
			return 1;
		memset(some + written, 1, given - written);
		written = given;
	}
	return 0;
}

int main(int argc, char **argv)
{
	/* malloc(3) of glibc maps what is larger than 32 MiB, whatever was freed before. */
	const int small = argc > 1 && !strcmp(argv[1], "heap");
	const int rounds = argc > 1 && strcmp(argv[1], "huge") && !small ? ROUNDS : 1;
	const int zeros = argc > 1 && !strcmp(argv[1], "read") ? open("/dev/zero", O_RDONLY) : -1;
	const int elsewhere = argc > 1 && !strcmp(argv[1], "elsewhere");
	const size_t size = 64 << 20;

	if (argc > 2 && !strcmp(argv[2], "base"))
		prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	if (argc > 3)
		return execvp(argv[3], argv + 3);
	if (argc > 1 && !strcmp(argv[1], "maps"))
		return maps(size);
	if (argc > 1 && !strcmp(argv[1], "grow"))
		return grow(size);
	if (argc > 1 && !strcmp(argv[1], "trim"))
		return small_blocks(NULL) != NULL;
	if (argc > 1 && !strcmp(argv[1], "thread"))
		return in_thread(small_blocks, 1);
	if (argc > 1 && !strcmp(argv[1], "stack"))
		return in_thread(deep, argc < 3 || strcmp(argv[2], "bare"));
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
		/* With a page where this one began the next block has no room there. */
		if (elsewhere)
			mmap(some - 16, 1, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	}
	return 0;
}
