// SPDX-License-Identifier: GPL-2.0
/* MADV_PAGEOUT of eight huge pages without swap, and stores to them, 20 times. */
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE (2L << 20)
#define SIZE (8 * HUGE)

int main(void)
{
	char *at = mmap(NULL, SIZE + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);

	at = (char *)(((intptr_t)at + HUGE - 1) & -HUGE);
	for (int round = 0; round < 20; round++) {
		memset(at, 1, SIZE);
		if (madvise(at, SIZE, MADV_PAGEOUT))
			return 1;
	}
	memset(at, 2, SIZE);
	return 0;
}
