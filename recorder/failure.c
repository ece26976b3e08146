// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "failure.h"

/* As in linux/capability.h from 5.8 on. */
#define PERFMON		38
#define PARANOID	"/proc/sys/kernel/perf_event_paranoid"
#define MLOCK_KB	"/proc/sys/kernel/perf_event_mlock_kb"

struct rights {
	/* Of kernel.perf_event_paranoid. */
	int paranoid;
	bool admin, perfmon;
	/* A seccomp filter is there. */
	bool filtered;
};

/* 0 if the file cannot be read. */
static int number_in(const char *path)
{
	FILE *file = fopen(path, "re");
	int number = 0;

	if (file && fscanf(file, "%d", &number) != 1)
		number = 0;
	if (file)
		fclose(file);
	return number;
}

/* Capabilities in another user namespace are none for perf events. */
static bool in_first_user_namespace(void)
{
	unsigned int first, real, size;
	FILE *file = fopen("/proc/self/uid_map", "re");
	bool all = !file || (fscanf(file, "%u %u %u", &first, &real, &size) == 3 &&
			     size == UINT32_MAX);

	if (file)
		fclose(file);
	return all;
}

static struct rights own_rights(void)
{
	struct rights rights = { .paranoid = number_in(PARANOID) };
	bool may_count = in_first_user_namespace();
	unsigned long long set;
	unsigned int mode;
	char line[128];
	FILE *file = fopen("/proc/self/status", "re");

	while (file && fgets(line, sizeof(line), file)) {
		if (may_count && sscanf(line, "CapEff: %llx", &set) == 1) {
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

/* Another user's, or of more capabilities: perf asks for the right to read it, as this does. */
static bool is_closed(pid_t pid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
	return pid && fd < 0;
}

static void explain_filter(char *sentence, size_t size)
{
	snprintf(sentence, size,
		 "a seccomp filter, such as that of a container, forbids perf events: "
		 "give the container CAP_PERFMON (docker run --cap-add PERFMON), or trace "
		 "outside of it.");
}

static void explain_rights(pid_t pid, char *sentence, size_t size)
{
	struct rights rights = own_rights();

	/* Such levels are Debian's and Ubuntu's; CAP_PERFMON is not enough for Debian's. */
	if (rights.paranoid > 2 && !rights.admin)
		snprintf(sentence, size,
			 "the kernel forbids perf events to users, as Debian and Ubuntu set it: "
			 "run `sysctl kernel.perf_event_paranoid=2` as root (it is %d), or trace as "
			 "root.",
			 rights.paranoid);
	else if (is_closed(pid) && !rights.perfmon)
		snprintf(sentence, size,
			 "process %d is another user's, or has other rights: trace it as root.",
			 pid);
	else if (rights.filtered)
		explain_filter(sentence, size);
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
			 "the kernel gives no buffer for perf's samples: end this user's other "
			 "traces, or run `sysctl kernel.perf_event_mlock_kb=%d` as root (it is "
			 "%d).", 2 * number_in(MLOCK_KB), number_in(MLOCK_KB));
	/* A kernel without perf events has no such file. */
	else if (error == ENOSYS && !access(PARANOID, F_OK))
		explain_filter(sentence, size);
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
