// SPDX-License-Identifier: GPL-2.0
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "thp.h"

/*
 * A process is looked at again after this time, for nothing tells of the call itself. To look
 * takes some 30 us.
 */
#define AGAIN	(10 * 1000000ull)

/* From Linux 5.0 on; a process that has ended forbids nothing. */
static bool forbids(pid_t pid)
{
	char path[32], text[4096];
	ssize_t size;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	size = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (size <= 0)
		return false;
	text[size] = '\0';
	return strstr(text, "\nTHP_enabled:\t0\n");
}

void thp_look(struct thp *thp, pid_t pid, uint64_t time, uint64_t now,
	      struct output *output)
{
	typeof(*thp->process) *process = &thp->process[pid % PROCESSES];
	struct ft_no_thp record = {
		.header = ft_header(FT_NO_THP, sizeof(record)),
		.pid = pid,
		.time = time,
	};

	if (process->pid == pid && (process->forbidden || now < process->time + AGAIN))
		return;
	process->pid = pid;
	process->time = now;
	process->forbidden = forbids(pid);
	if (process->forbidden)
		output_write(output, &record, sizeof(record));
}
