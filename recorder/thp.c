// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proc.h"
#include "thp.h"

/*
 * A process is looked at again after this time, for nothing tells of the call itself. To look
 * takes some 30 us.
 */
#define AGAIN	(10 * 1000000ull)

/* From Linux 5.0 on; a process that has ended forbids nothing. */
static bool forbids(pid_t pid)
{
	char path[32], *text;
	bool found;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	text = proc_read_text(path);
	found = text && strstr(text, "\nTHP_enabled:\t0\n");
	free(text);
	return found;
}

void thp_look(struct thp *thp, pid_t pid, uint64_t time, uint64_t now,
	      struct output *output)
{
	typeof(*thp->process) *process = &thp->process[pid % PROCESSES];

	if (process->pid == pid && (process->forbidden || now < process->time + AGAIN))
		return;
	process->pid = pid;
	process->time = now;
	process->forbidden = forbids(pid);
	if (process->forbidden)
		output_write(output, &(struct ft_no_thp) {
			.header = ft_header(FT_NO_THP, sizeof(struct ft_no_thp)),
			.pid = pid,
			.time = time,
		}, sizeof(struct ft_no_thp));
}
