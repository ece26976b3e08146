// SPDX-License-Identifier: GPL-2.0
/* Two threads with a name write 211 new pages each, when standard input has a line or ends. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>

#define PAGES	211
#define SIZE	(PAGES * 4096ul)

static pthread_barrier_t named, begin;

static void *work(void *unused)
{
	volatile char *map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise((void *)map, SIZE, MADV_NOHUGEPAGE);
	pthread_setname_np(pthread_self(), "worker");
	pthread_barrier_wait(&named);
	pthread_barrier_wait(&begin);
	for (unsigned long at = 0; at < SIZE; at += 4096)
		map[at] = 1;
	return unused;
}

int main(void)
{
	pthread_t thread[2];

	pthread_barrier_init(&named, NULL, 3);
	pthread_barrier_init(&begin, NULL, 3);
	for (int i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, work, NULL);
	pthread_barrier_wait(&named);
	puts("named");
	fflush(stdout);
	getchar();
	pthread_barrier_wait(&begin);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	return 0;
}
