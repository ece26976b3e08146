// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "failure.h"

/* As in linux/capability.h from 5.8 on. */
#define PERFMON		38
#define PARANOID	"/proc/sys/kernel/perf_event_paranoid"

struct rights {
	/* Of kernel.perf_event_paranoid. */
	int paranoid;
	bool admin, perfmon;
	/* A seccomp filter is there. */
	bool filtered;
};

static struct rights own_rights(void)
{
	struct rights rights = { 0 };
	unsigned long long set;
	unsigned int mode;
	char line[128];
	FILE *file = fopen(PARANOID, "re");

	if (file && fscanf(file, "%d", &rights.paranoid) != 1)
		rights.paranoid = 0;
	if (file)
		fclose(file);
	file = fopen("/proc/self/status", "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "CapEff: %llx", &set) == 1) {
			rights.admin = set >> CAP_SYS_ADMIN & 1;
			rights.perfmon = rights.admin || set >> PERFMON & 1;
		}
		if (sscanf(line, "Seccomp: %u", &mode) == 1)
			rights.filtered = mode;
	}
	if (file)
		fclose(file);
	return rights;
}

static bool is_anothers(pid_t pid)
{
	char path[64];
	struct stat status;

	snprintf(path, sizeof(path), "/proc/%d", pid);
	return pid && !stat(path, &status) && status.st_uid != geteuid();
}

static void explain_rights(pid_t pid, char *sentence, size_t size)
{
	struct rights rights = own_rights();

	/* That level is Debian's own; CAP_PERFMON is not enough for it. */
	if (rights.paranoid > 2 && !rights.admin)
		snprintf(sentence, size,
			 "the kernel forbids perf events to users, as Debian sets it: run "
			 "`sysctl kernel.perf_event_paranoid=2` as root (it is %d), or trace as root.",
			 rights.paranoid);
	else if (is_anothers(pid) && !rights.perfmon)
		snprintf(sentence, size,
			 "process %d is another user's, or has other rights: trace it as root.",
			 pid);
	else if (rights.filtered)
		snprintf(sentence, size,
			 "a seccomp filter, such as that of a container, forbids perf events: "
			 "give the container CAP_PERFMON (docker run --cap-add PERFMON), or trace "
			 "outside of it.");
	else
		snprintf(sentence, size,
			 "the kernel forbids perf events here, though kernel.perf_event_paranoid "
			 "is %d: trace as root, or ask what else forbids them, such as SELinux.",
			 rights.paranoid);
}

void failure_explain(int error, pid_t pid, char *sentence, size_t size)
{
	if (error == EACCES || error == EPERM)
		explain_rights(pid, sentence, size);
	else if (error == ENOBUFS)
		snprintf(sentence, size,
			 "the kernel gives no buffer for perf's samples: run `sysctl "
			 "kernel.perf_event_mlock_kb=516` as root, or end other traces.");
	else if (error == ENOENT || error == ENOSYS)
		snprintf(sentence, size,
			 "this kernel has no perf events: use one with CONFIG_PERF_EVENTS.");
	else if (error == EMFILE)
		snprintf(sentence, size,
			 "too many open files, one for each thread on each CPU: raise the hard "
			 "limit of `ulimit -n`.");
	else
		snprintf(sentence, size,
			 "perf_event_open failed (%s): trace a process that runs, or another "
			 "command.", strerror(error));
}
