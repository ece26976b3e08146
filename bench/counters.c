// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "counters.h"
#include "result.h"

#define CACHE(cache, op, result)					\
	(PERF_COUNT_HW_CACHE_##cache |					\
	 (PERF_COUNT_HW_CACHE_OP_##op << 8) |				\
	 (PERF_COUNT_HW_CACHE_RESULT_##result << 16))

enum mode { USER, KERNEL, BOTH };

/*
 * Each set fits the counters that a CPU has. With more events the kernel would
 * multiplex them, and an extrapolated count is not exact.
 */
static const struct event {
	const char *set;
	struct metric metric;
	uint32_t type;
	uint64_t config;
	enum mode mode;
} events[NR_COUNTERS] = {
	{ "core", { "cycles_user", "cycles", "processor cycles in user mode" },
	  PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, USER },
	{ "core", { "cycles_kernel", "cycles", "processor cycles in the kernel" },
	  PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, KERNEL },
	{ "core", { "instructions_user", "instructions", "retired in user mode" },
	  PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, USER },
	{ "core", { "instructions_kernel", "instructions", "retired in the kernel" },
	  PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, KERNEL },
	{ "cache", { "l1d_loads", "loads", "hardware counter" },
	  PERF_TYPE_HW_CACHE, CACHE(L1D, READ, ACCESS), BOTH },
	{ "cache", { "l1d_load_misses", "misses", "hardware counter" },
	  PERF_TYPE_HW_CACHE, CACHE(L1D, READ, MISS), BOTH },
	{ "cache", { "llc_loads", "loads", "hardware counter, last level" },
	  PERF_TYPE_HW_CACHE, CACHE(LL, READ, ACCESS), BOTH },
	{ "cache", { "llc_load_misses", "misses", "hardware counter, last level" },
	  PERF_TYPE_HW_CACHE, CACHE(LL, READ, MISS), BOTH },
	{ "tlb", { "dtlb_loads", "loads", "hardware counter" },
	  PERF_TYPE_HW_CACHE, CACHE(DTLB, READ, ACCESS), BOTH },
	{ "tlb", { "dtlb_load_misses", "misses", "hardware counter" },
	  PERF_TYPE_HW_CACHE, CACHE(DTLB, READ, MISS), BOTH },
};

const char *counters_set(size_t place)
{
	static const char * const sets[] = { "none", "core", "cache", "tlb" };

	return place < ARRAY_SIZE(sets) ? sets[place] : NULL;
}

const struct metric *counters_metric(size_t place)
{
	return place < NR_COUNTERS ? &events[place].metric : NULL;
}

static bool in_set(const struct counters *counters, size_t i)
{
	return !strcmp(counters->set, events[i].set);
}

enum scope { USER_AND_KERNEL, USER_ONLY };

static bool is_denied(int error)
{
	return error == EACCES || error == EPERM;
}

static int open_event(const struct event *event, enum scope scope)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = event->type,
		.config = event->config,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
			       PERF_FORMAT_TOTAL_TIME_RUNNING,
		.inherit = 1,	/* include the threads that touch */
		.exclude_hv = 1,
		.exclude_user = event->mode == KERNEL && scope != USER_ONLY,
		.exclude_kernel = event->mode == USER || scope == USER_ONLY,
	};

	return syscall(SYS_perf_event_open, &attr, 0, -1, -1,
		       PERF_FLAG_FD_CLOEXEC);
}

/*
 * Opens an event, without its kernel half if only that is forbidden. The
 * kernel checks permission before it looks for the counter, so a counter that
 * does not exist must not be reported as forbidden.
 */
static void open_counter(struct counters *counters, size_t i)
{
	int fd = open_event(&events[i], USER_AND_KERNEL);
	int error = errno;

	if (fd < 0 && events[i].mode != USER && is_denied(error)) {
		fd = open_event(&events[i], USER_ONLY);
		if (fd < 0) {
			error = errno;
		} else if (events[i].mode == BOTH) {
			counters->user_only = true;
		} else {
			close(fd);
			fd = -1;
		}
	}
	counters->fd[i] = fd;
	counters->error[i] = fd < 0 ? error : 0;
	counters->any |= fd >= 0;
}

void counters_open(struct counters *counters)
{
	if (counters->opened)
		return;
	counters->opened = true;
	for (size_t i = 0; i < NR_COUNTERS; i++) {
		counters->fd[i] = -1;
		if (in_set(counters, i))
			open_counter(counters, i);
	}
}

bool counters_wanted(const struct counters *counters, const char *name)
{
	for (size_t i = 0; i < NR_COUNTERS; i++)
		if (!strcmp(events[i].metric.name, name))
			return in_set(counters, i);
	return true;
}

void counters_read(const struct counters *counters,
		   struct counter_values *values)
{
	for (size_t i = 0; i < NR_COUNTERS; i++) {
		struct counter_value *value = &values->of[i];

		if (counters->fd[i] < 0 ||
		    read(counters->fd[i], value, sizeof(*value)) != sizeof(*value))
			memset(value, 0, sizeof(*value));
	}
}

/* Every kernel with perf events has this file. */
static bool read_paranoid(int *level)
{
	FILE *file = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
	bool ok = file && fscanf(file, "%d", level) == 1;

	if (file)
		fclose(file);
	return ok;
}

static void report_absent(struct run *run, const struct event *event, int error)
{
	const char *name = event->metric.name;
	int paranoid;

	if (!read_paranoid(&paranoid)) {
		result_absent(run, name,
			      "this kernel has no perf_event_open: build it with CONFIG_PERF_EVENTS");
		return;
	}
	switch (error) {
	case EACCES:
	case EPERM:
		result_absent(run, name,
			      "kernel.perf_event_paranoid is %d: sysctl kernel.perf_event_paranoid=%d allows it",
			      paranoid, event->mode == USER ? 2 : 1);
		break;
	case ENOENT:
	case ENODEV:
	case EOPNOTSUPP:
		result_absent(run, name,
			      "no such hardware counter here (a virtual machine without a PMU has none): use bare metal, or give the virtual machine a PMU");
		break;
	default:
		result_absent(run, name, "perf_event_open: %s", strerror(error));
	}
}

static void report_one(struct run *run, const struct event *event,
		       const struct counter_value *b,
		       const struct counter_value *e)
{
	uint64_t value = e->value - b->value;
	uint64_t enabled = e->enabled_ns - b->enabled_ns;
	uint64_t running = e->running_ns - b->running_ns;

	if (running < enabled)
		result_absent(run, event->metric.name,
			      "counted for %u %% of the time only, others use the counters: stop them (perf, the NMI watchdog)",
			      (unsigned int)(running * 100 / enabled));
	else
		result_add(run, event->metric.name, value);
}

void counters_report(struct run *run, const struct counters *counters,
		     const struct counter_values *begin,
		     const struct counter_values *end)
{
	for (size_t i = 0; i < NR_COUNTERS; i++) {
		if (!in_set(counters, i))
			continue;
		if (counters->fd[i] < 0)
			report_absent(run, &events[i], counters->error[i]);
		else
			report_one(run, &events[i], &begin->of[i], &end->of[i]);
	}
	if (counters->any)
		result_note(run, "counters_mode",
			    counters->user_only ? "user" : "user and kernel");
}
