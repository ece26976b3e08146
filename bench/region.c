// SPDX-License-Identifier: GPL-2.0
#include <string.h>

#include "region.h"
#include "result.h"

/* glibc 2.35 is the first that has the area of rseq(2), and its header. */
#define HAS_RSEQ (__GLIBC__ > 2 || (__GLIBC__ == 2 && __GLIBC_MINOR__ >= 35))

#if HAS_RSEQ
#include <sys/rseq.h>
#endif

const struct metric *region_metric(size_t place)
{
	static const struct metric own[] = {
		{ "page_faults", "faults", "minor and major faults of the process" },
		{ "minor_faults", "faults", "faults that needed no I/O" },
		{ "major_faults", "faults", "faults that needed I/O" },
		{ "elapsed_ns", "ns", "time by CLOCK_MONOTONIC" },
		{ "user_ns", "ns", "processor time in user mode, all threads" },
		{ "sys_ns", "ns", "processor time in the kernel, all threads" },
	};
	size_t i;

	if (place < ARRAY_SIZE(own))
		return &own[place];
	place -= ARRAY_SIZE(own);
	for (i = 0; vmstat_metric(i); i++, place--)
		if (!place)
			return vmstat_metric(i);
	return counters_metric(place);
}

/*
 * The fault counts are the innermost at both ends: the rest of the
 * bookkeeping may fault, and these faults must not be counted.
 */
static void take_begin(const struct region *region, struct snapshot *s)
{
	vmstat_take(&s->vmstat);
	counters_read(&region->counters, &s->counters);
	getrusage(region->who, &s->usage);
	clock_gettime(CLOCK_MONOTONIC, &s->time);
}

static void take_end(const struct region *region, struct snapshot *s)
{
	clock_gettime(CLOCK_MONOTONIC, &s->time);
	getrusage(region->who, &s->usage);
	counters_read(&region->counters, &s->counters);
	vmstat_take(&s->vmstat);
}

/*
 * The kernel writes the CPU's number to this area when it lets the thread run
 * again (rseq(2)). A child may share the page since fork(2).
 */
static void touch_rseq(void)
{
#if HAS_RSEQ
	struct rseq *area = (void *)((char *)__builtin_thread_pointer() +
				     __rseq_offset);

	/* The program is in no critical section, so 0 is there already. */
	memset(&area->rseq_cs, 0, sizeof(area->rseq_cs));
#endif
}

void region_begin_of(struct run *run, const char *name, int who)
{
	struct region *region = run->region;

	region->who = who;
	run->regions[run->nr_regions++] = name;
	touch_rseq();
	/*
	 * A dry run of both ends touches their code, their data, the vDSO and
	 * the stack. Otherwise these would fault inside the region.
	 */
	take_begin(region, &region->begin);
	take_end(region, &region->end);
	timeline_start(&region->timeline);
	take_begin(region, &region->begin);
}

void region_begin(struct run *run, const char *name)
{
	region_begin_of(run, name, RUSAGE_SELF);
}

void region_end(struct run *run)
{
	struct region *region = run->region;

	take_end(region, &region->end);
	timeline_stop(&region->timeline);
}

void region_timeline(struct run *run, void *map, size_t size, bool writes)
{
	if (param_number(run, "timeline"))
		timeline_open(&run->region->timeline, map, size, writes);
}

static uint64_t timespec_ns(struct timespec begin, struct timespec end)
{
	return (end.tv_sec - begin.tv_sec) * 1000000000ll +
	       (end.tv_nsec - begin.tv_nsec);
}

static uint64_t timeval_ns(struct timeval begin, struct timeval end)
{
	return (end.tv_sec - begin.tv_sec) * 1000000000ll +
	       (end.tv_usec - begin.tv_usec) * 1000ll;
}

void region_report(struct run *run)
{
	struct region *region = run->region;
	const struct snapshot *b = &region->begin, *e = &region->end;
	uint64_t minor = e->usage.ru_minflt - b->usage.ru_minflt;
	uint64_t major = e->usage.ru_majflt - b->usage.ru_majflt;

	result_add(run, "page_faults", minor + major);
	result_add(run, "minor_faults", minor);
	result_add(run, "major_faults", major);
	result_add(run, "elapsed_ns", timespec_ns(b->time, e->time));
	result_add(run, "user_ns", timeval_ns(b->usage.ru_utime,
					      e->usage.ru_utime));
	result_add(run, "sys_ns", timeval_ns(b->usage.ru_stime,
					     e->usage.ru_stime));
	vmstat_report(run, &b->vmstat, &e->vmstat);
	counters_report(run, &region->counters, &b->counters, &e->counters);
	timeline_collect(&region->timeline, b->time);
}
