// SPDX-License-Identifier: GPL-2.0
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "calls.h"

static const char * const names[FT_NR_CALLS] = {
	[FT_MUNMAP] = "sys_enter_munmap",
	[FT_BRK] = "sys_enter_brk",
	[FT_MADVISE] = "sys_enter_madvise",
	[FT_MREMAP] = "sys_enter_mremap",
	[FT_MREMAPPED] = "sys_exit_mremap",
};

/* 0 if it cannot be read: of a kernel without CONFIG_FTRACE_SYSCALLS, or by a user. */
static uint64_t tracepoint(const char *tracing, const char *name)
{
	uint64_t number = 0;
	char path[96];
	FILE *file;

	snprintf(path, sizeof(path), "%s/events/syscalls/%s/id", tracing, name);
	file = fopen(path, "re");
	if (file && fscanf(file, "%" SCNu64, &number) != 1)
		number = 0;
	if (file)
		fclose(file);
	return number;
}

bool calls_find(uint64_t tracepoints[FT_NR_CALLS])
{
	const char *tracing = "/sys/kernel/tracing";

	/* The kernel mounts tracefs there if nobody has mounted it. */
	if (access("/sys/kernel/tracing/events", F_OK))
		tracing = "/sys/kernel/debug/tracing";
	for (size_t call = 0; call < FT_NR_CALLS; call++) {
		tracepoints[call] = tracepoint(tracing, names[call]);
		if (!tracepoints[call])
			return false;
	}
	return true;
}

bool calls_room(struct calls *calls, size_t threads)
{
	*calls = (struct calls) {
		.events = calloc(threads, FT_NR_CALLS * sizeof(*calls->events)),
		.ids = calloc(threads, FT_NR_CALLS * sizeof(*calls->ids)),
		.lowest = UINT64_MAX,
	};
	return calls->events && calls->ids;
}

bool calls_add(struct calls *calls, int event, int ring)
{
	uint64_t *id = &calls->ids[calls->nr];

	calls->events[calls->nr++] = event;
	if (event < 0)
		return true;
	if (ioctl(event, PERF_EVENT_IOC_SET_OUTPUT, ring) ||
	    ioctl(event, PERF_EVENT_IOC_ID, id))
		return false;
	if (calls->lowest > *id)
		calls->lowest = *id;
	if (calls->highest < *id)
		calls->highest = *id;
	return true;
}

void calls_set(const struct calls *calls, unsigned long request)
{
	for (size_t i = 0; i < calls->nr; i++)
		if (calls->events[i] >= 0)
			ioctl(calls->events[i], request, 0);
}

void calls_close(struct calls *calls)
{
	for (size_t i = 0; i < calls->nr; i++)
		if (calls->events[i] >= 0)
			close(calls->events[i]);
	free(calls->events);
	free(calls->ids);
	*calls = (struct calls) { 0 };
}

/*
 * A fault's sample begins with its pc. The kernel numbers its events from 1 on: a program
 * that has its code as low as that must have it at one of these very numbers to be mistaken.
 */
int calls_which(const struct calls *calls, uint64_t id)
{
	if (id < calls->lowest || id > calls->highest)
		return -1;
	for (size_t i = 0; i < calls->nr; i++)
		if (calls->ids[i] == id)
			return i % FT_NR_CALLS;
	return -1;
}
