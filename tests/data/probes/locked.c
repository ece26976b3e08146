// SPDX-License-Identifier: GPL-2.0
/* One thread maps and unmaps memory while the other touches 8 MiB; "alone", it waits before. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

static atomic_int touched;

static void *touch(void *memory)
{
	for (size_t page = 0; page < 2048; page++) {
		((volatile char *)memory)[page << 12] = 1;
		/* Both threads may share a CPU. */
		sched_yield();
	}
	touched = 1;
	return NULL;
}

int main(int argc, char **argv)
{
	char *memory = mmap(NULL, 8 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t thread;

	pthread_create(&thread, NULL, touch, memory);
	if (argc > 2)
		pthread_join(thread, NULL);
	do {
		char *other = mmap(NULL, 1 << 16, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		munmap(other, 1 << 16);
		sched_yield();
	} while (!touched);
	return 0;
}
