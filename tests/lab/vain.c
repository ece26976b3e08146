// SPDX-License-Identifier: GPL-2.0
/*
 * Teaches the kernel that an instruction's reads are followed by writes, then reads
 * fresh pages with it that it does not write, or writes elsewhere, later or after the
 * page was freed. Prints how many pages of its own hold nothing but zeros when they
 * are freed, or at its end: it writes no zero.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE		4096ul
#define HUGE_PAGE	(2ul << 20)
/* Documentation/admin-guide/mm/pagemap.rst. A zero page is never exclusive. */
#define OWN		(1ull << 63 | 1ull << 56)

static unsigned long in_vain;

static void check(int holds)
{
	if (!holds)
		exit(1);
}

static volatile char *map_at(void *at, size_t size, int advice)
{
	char *map = mmap(at, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS |
			 (at ? MAP_FIXED : 0), -1, 0);

	check(map != MAP_FAILED);
	madvise(map, size, advice);
	return map;
}

static volatile char *map(size_t pages)
{
	return map_at(NULL, pages * PAGE, MADV_NOHUGEPAGE);
}

static int is_own(uintptr_t page)
{
	int pagemap = open("/proc/self/pagemap", O_RDONLY);
	uint64_t entry;

	check(pread(pagemap, &entry, sizeof(entry), page / PAGE * sizeof(entry)) ==
	      sizeof(entry));
	close(pagemap);
	return (entry & OWN) == OWN;
}

/* Counts pages, each of @size, that were allocated and that hold only zeros. */
static void count_of(size_t size, volatile char *map, size_t pages)
{
	for (size_t i = 0; i < pages; i++) {
		volatile char *page = map + i * size;
		size_t byte = 0;

		if (!is_own((uintptr_t)page))
			continue;
		while (byte < size && !page[byte])
			byte++;
		in_vain += byte == size ? size / PAGE : 0;
	}
}

static void count(volatile char *map, size_t pages)
{
	count_of(PAGE, map, pages);
}

static void fill(volatile char *map, size_t pages)
{
	for (size_t i = 0; i < pages; i++)
		map[i * PAGE + 100] = 1;
}

/* All that is learned is of the load here. */
static __attribute__((noinline)) void touch(volatile char *map, size_t pages, int update)
{
	for (size_t i = 0; i < pages; i++) {
		char old = map[i * PAGE];

		if (update)
			map[i * PAGE] = old + 1;
	}
}

static void teach(void)
{
	touch(map(256), 256, 1);
}

static void part_never_written(void)
{
	volatile char *m = map(40);

	teach();
	touch(m, 40, 0);
	count(m, 40);
}

static void part_written_later(void)
{
	volatile char *m = map(40);

	teach();
	touch(m, 40, 0);
	fill(m, 30);
	count(m, 40);
}

static void part_moved_then_written(void)
{
	volatile char *m = map(40), *to = map(40);

	teach();
	touch(m, 40, 0);
	check(mremap((void *)m, 40 * PAGE, 40 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
		     (void *)to) == (void *)to);
	fill(to, 25);
	count(to, 40);
}

/* The same addresses, and of course the same physical pages. */
static void part_freed_then_written(void)
{
	volatile char *m = map(40);

	teach();
	touch(m, 40, 0);
	count(m, 40);
	check(!munmap((void *)m, 40 * PAGE));
	m = map_at((void *)m, 40 * PAGE, MADV_NOHUGEPAGE);
	teach();
	touch(m, 40, 1);
	count(m, 40);
}

static void part_a_child_writes(void)
{
	volatile char *m = map(40);
	pid_t child;

	teach();
	touch(m, 40, 0);
	count(m, 40);
	child = fork();
	if (!child) {
		fill(m, 40);
		_exit(0);
	}
	check(waitpid(child, NULL, 0) == child);
}

/*
 * A lesson pays for one huge page, so every second read gets one: those of odd numbers.
 * One of these is never written, one only far from where it was read.
 */
static void part_huge(void)
{
	volatile char *m = map_at(NULL, 16 * HUGE_PAGE, MADV_HUGEPAGE);

	m = (volatile char *)(((uintptr_t)m + HUGE_PAGE) & ~(HUGE_PAGE - 1));
	for (int i = 0; i < 12; i++)
		touch(m + i * HUGE_PAGE, 1, i != 9 && i != 11);
	fill(m + 11 * HUGE_PAGE + 300 * PAGE, 1);
	count_of(HUGE_PAGE, m, 12);
}

int main(void)
{
	part_never_written();
	part_written_later();
	part_moved_then_written();
	part_freed_then_written();
	part_a_child_writes();
	part_huge();
	fprintf(stderr, "in vain: %lu\n", in_vain);
	return 0;
}
