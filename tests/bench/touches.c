// SPDX-License-Identifier: GPL-2.0
/*
 * touches WHERE WRITTEN ZEROED READ: touches so many pages of anonymous memory,
 * in one of several places of a process's life.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST	256

struct amounts {
	int written, zeroed, read;
};

static void *touch(void *argument)
{
	const struct amounts *amounts = argument;
	const size_t size = sysconf(_SC_PAGESIZE);
	/* With room between, so that no folio has pages of two parts. */
	volatile char *page = mmap(NULL, MOST * size, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED || madvise((void *)page, MOST * size, MADV_NOHUGEPAGE))
		abort();
	for (int i = 0; i < amounts->written; i++, page += size)
		page[size - 1] = 1;
	for (int i = 0; i < amounts->zeroed; i++, page += size)
		memset((void *)page, 0, size);
	for (int i = 0; i < amounts->read; i++, page += size)
		(void)*page;
	return NULL;
}

/* The process goes on in this thread, which is not its first one. */
static void *replace(void *argument)
{
	touch(argument);
	execl("/proc/self/exe", "touches", "none", "0", "0", "0", NULL);
	return NULL;
}

static void *outlive(void *argument)
{
	pthread_join(*(pthread_t *)argument, NULL);
	return NULL;
}

int main(int argc, char **argv)
{
	const char *where = argv[1];
	struct amounts amounts = { atoi(argv[2]), atoi(argv[3]), atoi(argv[4]) };
	pthread_t main_thread = pthread_self(), thread;
	char *missing[] = { "/missing", NULL };

	(void)argc;
	if (!strcmp(where, "process") || !strcmp(where, "beside-a-thread"))
		touch(&amounts);
	if (!strcmp(where, "child") && !fork()) {
		touch(&amounts);
		_exit(0);
	}
	/* The main thread ends first. */
	if (!strcmp(where, "last-thread")) {
		touch(&amounts);
		pthread_create(&thread, NULL, outlive, &main_thread);
		pthread_exit(NULL);
	}
	if (!strcmp(where, "thread")) {
		pthread_create(&thread, NULL, touch, &amounts);
		pthread_join(thread, NULL);
	}
	/* exit(3) ends a thread that waits for this one. */
	if (!strcmp(where, "beside-a-thread"))
		pthread_create(&thread, NULL, outlive, &main_thread);
	/* A child that shares this memory until it fails to execute. */
	if (!strcmp(where, "before-vfork")) {
		touch(&amounts);
		if (!vfork()) {
			execv(missing[0], missing);
			_exit(0);
		}
	}
	if (!strcmp(where, "replaced")) {
		pthread_create(&thread, NULL, replace, &amounts);
		pthread_join(thread, NULL);
	}
	while (wait(NULL) > 0)
		;
	return 0;
}
