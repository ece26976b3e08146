// SPDX-License-Identifier: GPL-2.0
/*
 * Two programs with other code at one pc: exec [NEXT] touches 100 pages at touch(), and then
 * executes NEXT. With -DWRITES it writes to them, without it reads each and then writes.
 */
#include <sys/mman.h>
#include <unistd.h>

#define PAGES	100

__attribute__((noinline, section(".touch"))) static void touch(volatile char *at)
{
#ifdef WRITES
	*at = 1;
#else
	char old = *at;

	*at = old + 1;
#endif
}

int main(int argc, char *argv[])
{
	size_t page = sysconf(_SC_PAGESIZE);
	char *map = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED)
		return 1;
	madvise(map, PAGES * page, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < PAGES; i++)
		touch(map + i * page);
	return argc > 1 ? execv(argv[1], argv + 1) : 0;
}
