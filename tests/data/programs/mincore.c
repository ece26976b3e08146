// SPDX-License-Identifier: GPL-2.0
/* mincore(2) of 4,096 pages, 200 times. */
#include <string.h>
#include <sys/mman.h>

#define SIZE (16 << 20)

static unsigned char resident[SIZE >> 12];

int main(void)
{
	char *at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise(at, SIZE, MADV_NOHUGEPAGE);
	memset(at, 1, SIZE);
	for (int round = 0; round < 200; round++)
		if (mincore(at, SIZE, resident))
			return 1;
	return 0;
}
