// SPDX-License-Identifier: GPL-2.0
/*
 * Counts the page faults of first touches of memory of each kind, by a store and
 * by an atomic add. The pages of files and of shared memory are there, but not yet
 * in the mapping. Prints a JSON object; its only argument is a directory.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define PAGES	256

static const struct kind {
	const char *name;
	int flags;
	enum { NOTHING, MEMORY, DISK } behind;
} kinds[] = {
	{ "private anonymous", MAP_PRIVATE | MAP_ANONYMOUS, NOTHING },
	{ "shared memory", MAP_SHARED, MEMORY },
	{ "private mapping of shared memory", MAP_PRIVATE, MEMORY },
	{ "shared file", MAP_SHARED, DISK },
	{ "private file", MAP_PRIVATE, DISK },
};

static size_t page;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static long faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt + usage.ru_majflt;
}

static void store(uint64_t *p)
{
	*(volatile uint64_t *)p = 1;
}

static void add(uint64_t *p)
{
	asm volatile(".arch_extension lse\n\tldadd %1, xzr, %0" : "+Q" (*p) : "r" (1UL));
}

static int open_backing(const struct kind *kind, const char *directory)
{
	char zeroes[PAGES * 16] = "";
	char path[4096];
	int fd;

	if (kind->behind == NOTHING)
		return -1;
	snprintf(path, sizeof(path), "%s/pages", directory);
	fd = kind->behind == MEMORY ? memfd_create("pages", 0) :
				      open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (fd < 0)
		fail(kind->name);
	for (size_t left = PAGES * page; left; left -= sizeof(zeroes))
		if (write(fd, zeroes, sizeof(zeroes)) != (ssize_t)sizeof(zeroes))
			fail("write");
	/* A write to a dirty page need not be announced to the file system. */
	fsync(fd);
	return fd;
}

static long count(const struct kind *kind, const char *directory, void (*touch)(uint64_t *p))
{
	const size_t size = PAGES * page;
	int fd = open_backing(kind, directory);
	/* Aligned, so that the pages around a read begin with the mapping. */
	char *room = mmap(NULL, 2 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *start = (char *)(((uintptr_t)room + size - 1) & ~(size - 1));
	long before;

	if (room == MAP_FAILED ||
	    mmap(start, size, PROT_READ | PROT_WRITE, kind->flags | MAP_FIXED, fd, 0) == MAP_FAILED)
		fail("mmap");
	madvise(start, size, MADV_NOHUGEPAGE);
	before = faults();
	for (size_t i = 0; i < PAGES; i++)
		touch((uint64_t *)(start + i * page));
	before = faults() - before;
	munmap(room, 2 * size);
	if (fd >= 0)
		close(fd);
	return before;
}

int main(int argc, char **argv)
{
	static uint64_t here;

	if (argc != 2)
		return 2;
	page = getpagesize();
	/* The code's own pages. */
	store(&here);
	add(&here);
	count(&kinds[0], argv[1], store);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		printf("%s\"%s\": [%ld, %ld]", i ? ", " : "{", kinds[i].name,
		       count(&kinds[i], argv[1], store), count(&kinds[i], argv[1], add));
	puts("}");
	return 0;
}
