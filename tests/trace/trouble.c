// SPDX-License-Identifier: GPL-2.0
/*
 * Programs that a recorder could disturb: trouble threads|fork|exec|exit N|signal N|run|maps|crowd|
 * signals.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGES	256ul
#define THREADS	8

static size_t page;

static volatile char *map_pages(void)
{
	char *map = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED)
		exit(1);
	madvise(map, PAGES * page, MADV_NOHUGEPAGE);
	return map;
}

/* A double for each page. */
__attribute__((noinline)) static void *doubles(void *unused)
{
	volatile char *map = map_pages();

	(void)unused;
	for (size_t i = 0; i < PAGES; i++) {
		char old = map[i * page];

		map[i * page] = old + 1;
	}
	return NULL;
}

static void *resting(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static void *running(void *unused)
{
	for (;;) {
		doubles(NULL);
		puts("touched");
		fflush(stdout);
		usleep(10000);
	}
	return unused;
}

static void threads(void)
{
	pthread_t all[THREADS];

	for (int i = 0; i < THREADS; i++)
		pthread_create(&all[i], NULL, doubles, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(all[i], NULL);
}

static void children(void)
{
	for (int i = 0; i < THREADS; i++) {
		if (!fork()) {
			doubles(NULL);
			_exit(0);
		}
	}
	while (wait(NULL) > 0)
		;
}

/* So many threads, of which the last makes doubles. */
static void crowd(void)
{
	pthread_attr_t small;
	pthread_t thread;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	for (int i = 0; i < 4300; i++)
		if (pthread_create(&thread, &small, resting, NULL))
			exit(1);
	pthread_create(&thread, &small, running, NULL);
	pthread_join(thread, NULL);
}

static volatile sig_atomic_t nr_signals;

static void count(int number)
{
	(void)number;
	nr_signals++;
}

/* Prints how many SIGUSR1 come. */
static void signals(void)
{
	signal(SIGUSR1, count);
	puts("ready");
	fflush(stdout);
	while (!nr_signals)
		pause();
	for (int i = 0; i < 10; i++)
		usleep(50000);
	printf("%d\n", (int)nr_signals);
}

int main(int argc, char *argv[])
{
	const char *what = argc > 1 ? argv[1] : "";

	page = sysconf(_SC_PAGESIZE);
	/* Its text in /proc has more than 100 KiB. */
	for (int i = 0; i < 2000 && !strcmp(what, "maps"); i++)
		mmap(NULL, page, i & 1 ? PROT_READ : PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!strcmp(what, "threads"))
		threads();
	else if (!strcmp(what, "fork"))
		children();
	else if (!strcmp(what, "exec"))
		execl("/proc/self/exe", argv[0], "threads", NULL);
	else if (!strcmp(what, "exit"))
		return atoi(argv[2]);
	else if (!strcmp(what, "signal"))
		raise(atoi(argv[2]));
	else if (!strcmp(what, "crowd"))
		crowd();
	else if (!strcmp(what, "signals"))
		signals();
	else if (!strcmp(what, "run") || !strcmp(what, "maps"))
		running(NULL);
	return 0;
}
