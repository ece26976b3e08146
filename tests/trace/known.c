// SPDX-License-Identifier: GPL-2.0
/*
 * Known first touches at known lines. A comment "read NAME" marks the line of a
 * first access, "write NAME" that of the second; the test reads them. Each part
 * touches a number of pages of its own; "none" marks what is no double.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE	((size_t)sysconf(_SC_PAGESIZE))
#define PART	__attribute__((noinline)) static void

static volatile char sum;
static const char known_copy[64] __attribute__((unused)) = "from here";

static volatile char *map_at(void *at, size_t pages)
{
	char *map = mmap(at, pages * PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS |
			 (at ? MAP_FIXED_NOREPLACE : 0), -1, 0);

	if (map == MAP_FAILED)
		_exit(1);
	madvise(map, pages * PAGE, MADV_NOHUGEPAGE);
	return map;
}

/* 101 pages */
PART load_store(volatile char *map, size_t pages)
{
	for (size_t i = 0; i < pages; i++) {
		volatile char *at = map + i * PAGE + 24;
		char old = *at;		/* read load-store */
		*at = old + 1;		/* write load-store */
	}
}

PART read_all(volatile char *map, size_t pages)
{
	for (size_t i = 0; i < pages; i++)
		sum += map[i * PAGE];	/* read apart */
}

/* 103 pages */
PART write_all(volatile char *map, size_t pages)
{
	for (size_t i = 0; i < pages; i++)
		map[i * PAGE + 64] = 1;	/* write apart */
}

/* 107 pages: read-modify-write in one instruction is one write fault on x86-64. */
PART atomic(volatile char *map, size_t pages)
{
	for (size_t i = 0; i < pages; i++) {
		uint64_t *at = (uint64_t *)(map + i * PAGE);
#ifdef __aarch64__
		uint64_t old;

		asm volatile(".arch armv8.1-a\n"	/* atomic */
			     "ldadd %1, %0, [%2]"
			     : "=&r" (old) : "r" (1ul), "r" (at) : "memory");
#else
		asm volatile("lock incq %0" : "+m" (*at));
#endif
	}
}

/* 109 pages */
PART exclusive(volatile char *map, size_t pages)
{
#ifdef __aarch64__
	for (size_t i = 0; i < pages; i++) {
		uint64_t *at = (uint64_t *)(map + i * PAGE), old;
		uint32_t failed;

		do {
			asm volatile("ldxr %0, [%1]"	/* read load-exclusive */
				     : "=r" (old) : "r" (at) : "memory");
			asm volatile("stxr %w0, %1, [%2]"	/* write load-exclusive */
				     : "=&r" (failed) : "r" (old), "r" (at) : "memory");
		} while (failed);
	}
#else
	(void)map;
	(void)pages;
#endif
}

/* None: written first, or only read. */
PART written_first(volatile char *map, size_t pages)
{
	for (size_t i = 0; i < pages; i++) {
		map[i * PAGE] = 1;
		sum += map[i * PAGE];
	}
}

PART only_read(volatile char *map, size_t pages)
{
	for (size_t i = 0; i < pages; i++)
		sum += map[i * PAGE];
}

/* None: the write is to another page, which took the place of the one read. */
PART replaced(size_t pages)
{
	volatile char *map = map_at(NULL, pages);

	only_read(map, pages);
	munmap((void *)map, pages * PAGE);
	map = map_at((void *)map, pages);
	written_first(map, pages);
}

/* None: the page that was read is given back, at the end of a mapping or within. */
PART given_back(size_t pages)
{
	size_t size = pages * PAGE;
	volatile char *map = map_at(NULL, 2 * pages), *heap = sbrk(size);

	only_read(map, pages);
	madvise((void *)map, size, MADV_DONTNEED);
	written_first(map, pages);

	only_read(map + size, pages);
	munmap((void *)(map + size), size);
	map_at((void *)(map + size), pages);
	written_first(map + size, pages);

	only_read(heap, pages);
	sbrk(-size);
	sbrk(size);
	written_first(heap, pages);

	map = map_at(NULL, pages);
	only_read(map, pages);
	map = mremap((void *)map, size, PAGE, 0);
	map = mremap((void *)map, PAGE, size, MREMAP_MAYMOVE);
	written_first(map + PAGE, pages - 1);
}

/* None: what copies to a page writes to it, also if the page is copied later. */
PART copied(volatile char *map, size_t pages)
{
#ifdef __x86_64__
	for (size_t i = 0; i < pages; i++) {
		const char *from = known_copy;
		void *to = (void *)(map + i * PAGE);
		size_t size = sizeof(known_copy);

		asm volatile("rep movsb" : "+S" (from), "+D" (to), "+c" (size) : : "memory");
	}
#endif
	madvise((void *)map, pages * PAGE, MADV_DONTNEED);
	written_first(map, pages);
}

/* None: the parent's and the child's copies of a page that was written before. */
PART forked(volatile char *map, size_t pages)
{
	pid_t child;

	written_first(map, pages);
	child = fork();
	written_first(map, pages);
	if (!child)
		_exit(0);
	waitpid(child, NULL, 0);
}

static void *reading(void *map)
{
	read_all(map, 17);
	return NULL;
}

int main(void)
{
	volatile char *map = map_at(NULL, 103);
	pthread_t thread;

	load_store(map_at(NULL, 101), 101);
	read_all(map, 103);
	write_all(map, 103);
	atomic(map_at(NULL, 107), 107);
	exclusive(map_at(NULL, 109), 109);
	written_first(map_at(NULL, 113), 113);
	only_read(map_at(NULL, 127), 127);
	replaced(131);
	given_back(139);
	copied(map_at(NULL, 149), 149);
	forked(map_at(NULL, 137), 137);
	/* Another thread reads what this one writes: one process. */
	map = map_at(NULL, 17);
	pthread_create(&thread, NULL, reading, (void *)map);
	pthread_join(thread, NULL);
	write_all(map, 17);
	return 0;
}
