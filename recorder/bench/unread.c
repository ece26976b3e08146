// SPDX-License-Identifier: GPL-2.0
/*
 * unread COMMAND...: executes a command, whose page faults the kernel samples with
 * address, pc, thread and time, and nobody reads. It is the least that such an event
 * costs. x86-64 and arm64, one event for each CPU that is on.
 */
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define RING_PAGES	1024

static int sample(pid_t pid, int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_PAGE_FAULTS,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_ADDR,
		.disabled = 1,
		.enable_on_exec = 1,
		.inherit = 1,
		.exclude_kernel = 1,
		/* A ring that may not be written is overwritten: no sample is lost */
		.write_backward = 1,
		/* Wake nobody up */
		.watermark = 1,
		.wakeup_watermark = 1U << 30,
	};
	int fd = syscall(SYS_perf_event_open, &attr, pid, cpu, -1, 0);

	return fd < 0 || mmap(NULL, (1 + RING_PAGES) * sysconf(_SC_PAGESIZE), PROT_READ,
			      MAP_SHARED, fd, 0) == MAP_FAILED;
}

int main(int argc, char **argv)
{
	pid_t pid = argc > 1 ? fork() : -1;
	int status;

	if (pid == 0) {
		raise(SIGSTOP);
		execvp(argv[1], argv + 1);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, WUNTRACED) < 0)
		return 2;
	for (int cpu = 0; cpu < sysconf(_SC_NPROCESSORS_ONLN); cpu++) {
		if (sample(pid, cpu)) {
			perror("unread: perf_event_open");
			kill(pid, SIGKILL);
			return 2;
		}
	}
	kill(pid, SIGCONT);
	waitpid(pid, &status, 0);

	return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}
