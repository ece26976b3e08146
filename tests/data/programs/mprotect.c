// SPDX-License-Identifier: GPL-2.0
/* mprotect(2) of 4,096 dirty pages of shared memory, 100 times, without a fault between. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SIZE (16 << 20)

int main(void)
{
	int fd = memfd_create("shared", 0);
	char *at;

	if (ftruncate(fd, SIZE))
		return 1;
	at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	memset(at, 1, SIZE);
	for (int round = 0; round < 100; round++)
		if (mprotect(at, SIZE, PROT_READ) || mprotect(at, SIZE, PROT_READ | PROT_WRITE))
			return 1;
	return 0;
}
