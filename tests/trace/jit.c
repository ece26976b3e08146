// SPDX-License-Identifier: GPL-2.0
/* Code that is in no file: copies a function to new memory, names it for perf, runs it there. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGES	331ul
#define ROOM	512
#ifndef FOR_EVER
#define FOR_EVER	0
#endif

/* Calls nothing and refers to nothing, so it runs wherever it is. */
__attribute__((noinline, optimize("no-tree-loop-distribute-patterns")))
static void touch(volatile char *map, size_t pages, size_t page)
{
	for (size_t i = 0; i < pages; i++) {
		char old = map[i * page];

		map[i * page] = old + 1;
	}
}

int main(void)
{
	size_t page = sysconf(_SC_PAGESIZE);
	char *code = mmap(NULL, page, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *map = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void (*run)(volatile char *map, size_t pages, size_t page);
	char path[64];
	FILE *names;

	if (code == MAP_FAILED || map == MAP_FAILED)
		return 1;
	madvise(map, PAGES * page, MADV_NOHUGEPAGE);
	memcpy(code, (const void *)touch, ROOM);
	__builtin___clear_cache(code, code + ROOM);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	names = fopen(path, "w");
	if (!names)
		return 1;
	fprintf(names, "%lx %x compiled table.js:3\n", (unsigned long)code, ROOM);
	fclose(names);
	run = (void *)code;
	run(map, PAGES, page);
	puts(path);
	fflush(stdout);
	for (int i = 0; FOR_EVER; i++) {
		madvise(map, PAGES * page, MADV_DONTNEED);
		run(map, PAGES, page);
	}
	/* The recorder reads code while its program lives, and a host may be busy. */
	sleep(3);
	return 0;
}
