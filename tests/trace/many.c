// SPDX-License-Identifier: GPL-2.0
/* Takes as many page faults as its argument says, in a small memory, and does nothing else. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGES	1024ul

int main(int argc, char *argv[])
{
	size_t page = sysconf(_SC_PAGESIZE), left = argc > 1 ? atol(argv[1]) : 0;
	volatile char *map = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED)
		return 1;
	madvise((void *)map, PAGES * page, MADV_NOHUGEPAGE);
	while (left > 0) {
		for (size_t i = 0; i < PAGES && left > 0; i++, left--)
			map[i * page] = 1;
		madvise((void *)map, PAGES * page, MADV_DONTNEED);
	}
	return 0;
}
