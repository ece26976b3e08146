// SPDX-License-Identifier: GPL-2.0
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "calls.h"

static const char * const names[FT_NR_CALLS] = {
	[FT_MUNMAP] = "sys_enter_munmap",
	[FT_BRK] = "sys_enter_brk",
	[FT_MADVISE] = "sys_enter_madvise",
	[FT_MREMAP] = "sys_enter_mremap",
	[FT_MREMAPPED] = "sys_exit_mremap",
};

/* tracefs as it is mounted, or else as a mount that nobody else sees (Linux 5.2); -1 for none. */
static int open_tracefs(void)
{
	int tracing = open("/sys/kernel/tracing", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int context;

	if (tracing >= 0) {
		if (!faccessat(tracing, "events", F_OK, 0))
			return tracing;
		close(tracing);
		tracing = -1;
	}
	context = syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC);
	if (context < 0)
		return -1;
	if (!syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		tracing = syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, 0);
	close(context);
	return tracing;
}

/* 0 if it cannot be read: of a kernel without CONFIG_FTRACE_SYSCALLS, or by a user. */
static uint64_t tracepoint(int tracing, const char *name)
{
	uint64_t number = 0;
	char path[96], text[24];
	ssize_t size = -1;
	int file;

	snprintf(path, sizeof(path), "events/syscalls/%s/id", name);
	file = openat(tracing, path, O_RDONLY | O_CLOEXEC);
	if (file >= 0) {
		size = read(file, text, sizeof(text) - 1);
		close(file);
	}
	if (size > 0) {
		text[size] = '\0';
		number = strtoull(text, NULL, 10);
	}
	return number;
}

bool calls_find(uint64_t tracepoints[FT_NR_CALLS])
{
	const int tracing = open_tracefs();
	bool all = tracing >= 0;

	for (size_t call = 0; all && call < FT_NR_CALLS; call++) {
		tracepoints[call] = tracepoint(tracing, names[call]);
		all = tracepoints[call];
	}
	if (tracing >= 0)
		close(tracing);
	return all;
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
