// SPDX-License-Identifier: GPL-2.0
/*
 * Reads and then writes each page of two fresh mappings, in an AArch32 task: by a load and
 * a store, and by LDREX and STREX. Prints the page faults of each.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define PAGE	4096ul
#define PAGES	1024ul

static long faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt;
}

static __attribute__((noinline)) void load_store(volatile char *at)
{
	(*at)++;
}

static __attribute__((noinline)) void exclusive(volatile char *at)
{
	unsigned int old, failed;

	asm volatile("1: ldrexb %0, [%2]\n"
		     "   add %0, %0, #1\n"
		     "   strexb %1, %0, [%2]\n"
		     "   teq %1, #0\n"
		     "   bne 1b"
		     : "=&r" (old), "=&r" (failed) : "r" (at) : "memory", "cc");
}

static long count(void (*touch)(volatile char *at))
{
	char *map = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);
	long before;

	if (map == MAP_FAILED || madvise(map, PAGES * PAGE, MADV_NOHUGEPAGE))
		return -1;
	before = faults();
	for (unsigned long i = 0; i < PAGES; i++)
		touch(map + i * PAGE);
	return faults() - before;
}

int main(void)
{
	printf("{\"bits\": %zu, ", 8 * sizeof(void *));
	printf("\"load, store\": %ld, ", count(load_store));
	printf("\"ldrex, strex\": %ld}\n", count(exclusive));
	return 0;
}
