// SPDX-License-Identifier: GPL-2.0
#include "region.h"
#include "run.h"

#define VMSTAT(name)	{ name, "events", "/proc/vmstat, the whole system" }

const struct metric region_metrics[] = {
	{ "page_faults", "faults", "minor and major faults of the process" },
	{ "minor_faults", "faults", "faults that needed no I/O" },
	{ "major_faults", "faults", "faults that needed I/O" },
	{ "elapsed_ns", "ns", "time by CLOCK_MONOTONIC" },
	{ "user_ns", "ns", "processor time in user mode, all threads" },
	{ "sys_ns", "ns", "processor time in the kernel, all threads" },
	VMSTAT("pgfault"),
	VMSTAT("pgmajfault"),
	VMSTAT("pgreuse"),
	VMSTAT("pgalloc_dma"),
	VMSTAT("pgalloc_dma32"),
	VMSTAT("pgalloc_normal"),
	VMSTAT("pgalloc_movable"),
	VMSTAT("pgfree"),
	VMSTAT("thp_fault_alloc"),
	VMSTAT("thp_fault_fallback"),
	VMSTAT("thp_collapse_alloc"),
	VMSTAT("thp_split_page"),
	VMSTAT("thp_split_pmd"),
	VMSTAT("thp_zero_page_alloc"),
	VMSTAT("thp_zero_page_alloc_failed"),
	VMSTAT("compact_stall"),
	VMSTAT("pgscan_direct"),
	{ "cycles_user", "cycles", "processor cycles in user mode" },
	{ "cycles_kernel", "cycles", "processor cycles in the kernel" },
	{ "instructions_user", "instructions", "retired in user mode" },
	{ "instructions_kernel", "instructions", "retired in the kernel" },
	{ "l1d_loads", "loads", "hardware counter" },
	{ "l1d_load_misses", "misses", "hardware counter" },
	{ "llc_loads", "loads", "hardware counter, last level" },
	{ "llc_load_misses", "misses", "hardware counter, last level" },
	{ "dtlb_loads", "loads", "hardware counter" },
	{ "dtlb_load_misses", "misses", "hardware counter" },
	{ }
};

/*
 * The fault counts are the innermost at both ends: the rest of the
 * bookkeeping may fault, and must not be seen to.
 */
static void take_begin(struct run *run, struct snapshot *s)
{
	vmstat_take(&s->vmstat);
	counters_read(&run->counters, &s->counters);
	getrusage(run->region.who, &s->usage);
	clock_gettime(CLOCK_MONOTONIC, &s->time);
}

static void take_end(struct run *run, struct snapshot *s)
{
	clock_gettime(CLOCK_MONOTONIC, &s->time);
	getrusage(run->region.who, &s->usage);
	counters_read(&run->counters, &s->counters);
	vmstat_take(&s->vmstat);
}

void region_begin_of(struct run *run, const char *name, int who)
{
	run->region.who = who;
	run->regions[run->nr_regions++] = name;
	/*
	 * A dry run of both ends touches their code, their data, the vDSO and
	 * the stack, all of which would fault inside the region otherwise.
	 */
	take_begin(run, &run->region.begin);
	take_end(run, &run->region.end);
	timeline_start(&run->timeline);
	take_begin(run, &run->region.begin);
}

void region_begin(struct run *run, const char *name)
{
	region_begin_of(run, name, RUSAGE_SELF);
}

void region_end(struct run *run)
{
	take_end(run, &run->region.end);
	timeline_stop(&run->timeline);
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
	const struct snapshot *b = &run->region.begin, *e = &run->region.end;
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
	counters_report(run, &run->counters, &b->counters, &e->counters);
	timeline_collect(&run->timeline, b->time);
}
