// SPDX-License-Identifier: GPL-2.0
/*
 * How long the kernel took to boot, by its own log: what a feature adds to the
 * time before the first process.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "result.h"

/* The kernel's last message before it executes the first process. */
#define LAST_WORDS	"as init process"

/*
 * Finds the time of this message, in microseconds. Each read of /dev/kmsg
 * returns one record, "priority,number,time,flags;text". Returns 0 or a
 * negative errno: -ENOENT if the log no longer has the message.
 */
static int read_boot_time(uint64_t *us)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	unsigned long time;
	char record[1024];
	ssize_t length;
	int error = -ENOENT;

	if (fd < 0)
		return -errno;
	for (;;) {
		length = read(fd, record, sizeof(record) - 1);
		if (length < 0 && errno == EPIPE)
			continue;	/* overwritten; try the next one */
		if (length <= 0)
			break;
		record[length] = '\0';
		if (strstr(record, LAST_WORDS) &&
		    sscanf(record, "%*u,%*u,%lu", &time) == 1) {
			*us = time;
			error = 0;
			break;
		}
	}
	close(fd);
	return error;
}

static enum status measure(struct run *run)
{
	uint64_t us;
	int error = read_boot_time(&us);

	if (error == -ENOENT)
		return result_unavailable(run, "the kernel's log does not reach back to its boot");
	if (error)
		return result_unavailable(run, "/dev/kmsg cannot be read (%s): run as root",
					  strerror(-error));
	result_add(run, "boot_us", us);
	return STATUS_OK;
}

static const struct param params[] = {
	{ }
};

static const struct metric metrics[] = {
	{
		.name = "boot_us", .unit = "us",
		.help = "from the start of the kernel's clock to the first process",
	},
	{ }
};

static const struct experiment boot = {
	.name = "boot",
	.summary = "how long the kernel took to boot, by its own log",
	.detail =
"Reads from /dev/kmsg when the kernel started its first process, counted from the\n"
"start of its clock. Runs nothing and touches nothing.",
	.example = "",
	.params = params,
	.metrics = metrics,
	.measure = measure,
};

EXPERIMENT(boot);
