// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "arch.h"
#include "cpus.h"
#include "region.h"
#include "share.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE	23	/* Linux 5.14 */
#endif

/* The barrier at which the threads wait for each other. */
struct meeting {
	pthread_mutex_t entrance;	/* held until all threads are created */
	bool cancelled;			/* a thread could not be created */
	pthread_barrier_t barrier;
};

static void touch_share(struct share *share)
{
	if (share->touch)
		share->touch->pages(share->begin, share->end, page_size());
	else if (madvise(share->begin, share->end - share->begin,
			 MADV_POPULATE_WRITE))
		share->error = errno;
}

/* The first call of a function faults in its code and its stack. */
static void warm_up(const struct share *share)
{
	struct share warm = *share;

	warm.begin = share->scratch;
	warm.end = share->scratch + page_size();
	touch_share(&warm);
}

static void *thread_main(void *arg)
{
	struct share *share = arg;
	struct meeting *meeting = share->meeting;

	pthread_mutex_lock(&meeting->entrance);
	pthread_mutex_unlock(&meeting->entrance);
	if (meeting->cancelled)
		return NULL;
	cpus_pin(share->cpu);
	warm_up(share);
	for (int i = 0; i < 2; i++)	/* first: all are here; second: start */
		pthread_barrier_wait(&meeting->barrier);
	touch_share(share);
	pthread_barrier_wait(&meeting->barrier);
	return NULL;
}

/* The number of threads that run; if one is missing, all are cancelled. */
static unsigned int start_threads(struct meeting *meeting,
				  struct share *shares, unsigned int threads)
{
	unsigned int started;

	pthread_mutex_lock(&meeting->entrance);
	for (started = 0; started < threads; started++) {
		shares[started].meeting = meeting;
		if (pthread_create(&shares[started].thread, NULL, thread_main,
				   &shares[started]))
			break;
	}
	meeting->cancelled = started < threads;
	pthread_mutex_unlock(&meeting->entrance);
	return started;
}

static enum status run_threads(struct run *run, struct share *shares,
			       unsigned int threads)
{
	struct meeting meeting = { .entrance = PTHREAD_MUTEX_INITIALIZER };
	unsigned int started;

	pthread_barrier_init(&meeting.barrier, NULL, threads + 1);
	started = start_threads(&meeting, shares, threads);
	if (started == threads) {
		pthread_barrier_wait(&meeting.barrier);
		region_begin(run, run->experiment->name);
		marker_begin();
		pthread_barrier_wait(&meeting.barrier);
		pthread_barrier_wait(&meeting.barrier);
		marker_end();
		region_end(run);
	}
	for (unsigned int i = 0; i < started; i++)
		pthread_join(shares[i].thread, NULL);
	pthread_barrier_destroy(&meeting.barrier);
	if (started < threads)
		return refuse(run, "--threads %u: only %u could be started: give fewer",
			      threads, started);
	return STATUS_OK;
}

static void run_alone(struct run *run, struct share *share)
{
	warm_up(share);
	region_begin(run, run->experiment->name);
	marker_begin();
	touch_share(share);
	marker_end();
	region_end(run);
}

void shares_divide(struct share *shares, unsigned int threads,
		   unsigned int cpus, const struct memory *memory, size_t page)
{
	size_t pages = memory->size / page;

	for (unsigned int i = 0; i < threads; i++) {
		shares[i].cpu = i % cpus;
		shares[i].begin = memory->start + pages * i / threads * page;
		shares[i].end = memory->start + pages * (i + 1) / threads * page;
	}
}

enum status shares_touch(struct run *run, struct share *shares,
			 unsigned int threads)
{
	if (threads > 1)
		return run_threads(run, shares, threads);
	run_alone(run, shares);
	return STATUS_OK;
}
