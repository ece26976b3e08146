// SPDX-License-Identifier: GPL-2.0
/*
 * First touches as huge pages of every size meet them: `sizes MIB` prints how many
 * page faults it took. MIB is what a page table maps. `sizes FILE POLICY` writes a
 * size's setting, in a process of its own, so that another has it from its start.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static size_t page;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void set(const char *path, const char *policy)
{
	FILE *file = fopen(path, "we");

	if (!file || fputs(policy, file) < 0 || fclose(file))
		fail(path);
}

static char *map(size_t size)
{
	char *start = mmap(NULL, size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (start == MAP_FAILED)
		fail("mmap");
	return start;
}

static void write_each(char *start, size_t size, size_t step)
{
	for (size_t at = 0; at < size; at += step)
		((volatile char *)start)[at] = 1;
}

static void read_each(char *start, size_t size)
{
	for (size_t at = 0; at < size; at += page)
		(void)((volatile char *)start)[at];
}

/* In order, and no size of huge page ends where the mapping does. */
static void fill(size_t size)
{
	char *start = map(size);

	write_each(start, size, page);
	munmap(start, size);
}

/* Zero pages that are written, and a part that is given back. */
static void read_first(size_t size)
{
	char *start = map(size);

	read_each(start, size);
	write_each(start, size, page);
	madvise(start + size / 4, size / 16, MADV_DONTNEED);
	write_each(start, size, page);
	munmap(start, size);
}

static void grow(size_t size, size_t larger)
{
	char *start = map(size);

	write_each(start, size, page);
	start = mremap(start, size, larger, MREMAP_MAYMOVE);
	if (start == MAP_FAILED)
		fail("mremap");
	write_each(start, larger, page);
	munmap(start, larger);
}

static void leave_holes(size_t size)
{
	char *start = map(size);

	write_each(start, size, 3 * page);
	munmap(start, size);
}

static void touch_backwards(size_t size)
{
	char *start = map(size);

	for (size_t at = size; at; at -= page)
		((volatile char *)start)[at - page] = 1;
	munmap(start, size);
}

/* Half as often as there are pages, by a linear congruence. */
static void scatter(size_t size)
{
	char *start = map(size);
	unsigned int next = 1;

	for (size_t i = 0; i < size / page / 2; i++) {
		next = next * 1664525 + 1013904223;
		((volatile char *)start)[(next >> 8) % (size / page) * page] = 1;
	}
	munmap(start, size);
}

/* As runtimes do: memory is reserved, and made usable part by part. */
static void reserve(size_t size)
{
	size_t part = size / 8;
	char *start = mmap(NULL, size, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (start == MAP_FAILED)
		fail("mmap");
	for (size_t at = 0; at < size; at += part) {
		if (mprotect(start, at + part, PROT_READ | PROT_WRITE))
			fail("mprotect");
		write_each(start + at, part, page);
	}
	munmap(start, size);
}

static long faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt;
}

int main(int argc, char **argv)
{
	size_t table = argc > 1 ? strtoul(argv[1], NULL, 10) << 20 : 0;

	if (argc > 2) {
		set(argv[1], argv[2]);
		return 0;
	}
	page = sysconf(_SC_PAGESIZE);
	fill(2 * table + 83 * page);
	read_first(2 * table);
	grow(table / 2, 2 * table);
	leave_holes(2 * table);
	touch_backwards(2 * table);
	scatter(2 * table);
	reserve(2 * table);
	printf("%ld\n", faults());
	return 0;
}
