// SPDX-License-Identifier: GPL-2.0
/*
 * What it costs to see a program's munmap(2): ns of a call of it, of an mmap(2) that a filter
 * leaves out, and of getppid(2), which nobody asks for. Alone; with the samples of tracepoints
 * that the recorder takes, which nobody reads; and with a seccomp filter that asks another thread,
 * which lets the call continue. As root.
 */
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS		9
#define CALLS		20000
#define RING_PAGES	1024

static double elapsed_ns(const struct timespec *since)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - since->tv_sec) * 1e9 + now.tv_nsec - since->tv_nsec;
}

static int compare(const void *a, const void *b)
{
	const double *first = a, *second = b;

	return (*first > *second) - (*first < *second);
}

/* The median of the rounds. Nothing is mapped at the address, nor may be without flags. */
static double measure(int number)
{
	double ns[ROUNDS];
	struct timespec since;

	for (int round = 0; round < ROUNDS; round++) {
		clock_gettime(CLOCK_MONOTONIC, &since);
		for (int call = 0; call < CALLS; call++)
			syscall(number, 0x10000, 4096, 0, 0, 0, 0);
		ns[round] = elapsed_ns(&since) / CALLS;
	}
	qsort(ns, ROUNDS, sizeof(*ns), compare);
	return ns[ROUNDS / 2];
}

static void report(const char *how)
{
	printf("%-22s munmap %7.0f ns, mmap %5.0f ns, getppid %5.0f ns\n", how,
	       measure(SYS_munmap), measure(SYS_mmap), measure(SYS_getppid));
	fflush(stdout);
}

static int trace(const char *name, const char *filter)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
			       PERF_SAMPLE_TIME | PERF_SAMPLE_RAW | PERF_SAMPLE_CALLCHAIN |
			       PERF_SAMPLE_STACK_USER,
		.sample_max_stack = 64,
		.sample_stack_user = sizeof(uint64_t),
		.exclude_kernel = 1,
		.exclude_callchain_kernel = 1,
		/* A ring that may not be written is overwritten. */
		.write_backward = 1,
		.watermark = 1,
		.wakeup_watermark = 1U << 30,
	};
	char path[96];
	FILE *file;
	int fd;

	snprintf(path, sizeof(path), "/sys/kernel/tracing/events/syscalls/%s/id", name);
	file = fopen(path, "re");
	if (!file || fscanf(file, "%llu", &attr.config) != 1)
		return -1;
	fclose(file);
	fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
	return fd < 0 || (filter && ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter)) ||
	       mmap(NULL, (1 + RING_PAGES) * sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, fd,
		    0) == MAP_FAILED;
}

static void *answer(void *listener)
{
	struct seccomp_notif call = { 0 };
	struct seccomp_notif_resp go = { .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };

	while (!ioctl(*(int *)listener, SECCOMP_IOCTL_NOTIF_RECV, &call)) {
		go.id = call.id;
		ioctl(*(int *)listener, SECCOMP_IOCTL_NOTIF_SEND, &go);
		call = (struct seccomp_notif) { 0 };
	}
	return NULL;
}

static int ask(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_munmap, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(*filter), filter };
	static int listener;
	pthread_t thread;

	/* The thread that answers has the filter, too: it never calls munmap(2). */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
			   &program);
	return listener < 0 || pthread_create(&thread, NULL, answer, &listener);
}

static int alone(void)
{
	return 0;
}

static int traced(void)
{
	return trace("sys_enter_munmap", NULL) || trace("sys_enter_brk", NULL) ||
	       trace("sys_enter_madvise", NULL) || trace("sys_enter_mremap", NULL) ||
	       trace("sys_exit_mremap", NULL) || trace("sys_enter_mmap", "flags & 0x20000");
}

int main(void)
{
	static const struct {
		const char *how;
		int (*begin)(void);
	} ways[] = {
		{ "alone", alone },
		{ "tracepoints", traced },
		{ "seccomp notification", ask },
	};

	for (size_t way = 0; way < sizeof(ways) / sizeof(*ways); way++) {
		pid_t pid = fork();
		int status;

		if (pid == 0) {
			if (ways[way].begin()) {
				perror(ways[way].how);
				_exit(2);
			}
			report(ways[way].how);
			_exit(0);
		}
		if (waitpid(pid, &status, 0) < 0 || status)
			return 2;
	}
	return 0;
}
