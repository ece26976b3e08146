// SPDX-License-Identifier: GPL-2.0
#include <asm/perf_regs.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cpus.h"
#include "rings.h"

#define BIT(number)	((uint64_t)1 << (number))
/* The pc, and what a string instruction of x86-64 reads and writes; what unwinding begins with. */
#ifdef __aarch64__
#define USER_REGS	BIT(PERF_REG_ARM64_PC)
#define FRAME_REGS	(BIT(PERF_REG_ARM64_X29) | BIT(PERF_REG_ARM64_LR) | BIT(PERF_REG_ARM64_SP))
#else
#define USER_REGS	(BIT(PERF_REG_X86_SI) | BIT(PERF_REG_X86_DI) | BIT(PERF_REG_X86_IP))
#define FRAME_REGS	(BIT(PERF_REG_X86_BP) | BIT(PERF_REG_X86_SP))
#endif

/* For all rings together, where locked memory has no limit. */
#define MOST_MEMORY	(64ul << 20)
#define LARGEST_RING	(16ul << 20)
#define DEEPEST_CHAIN	64
/* From the top of the stack: through malloc(3) and what calls it. */
#define STACK_BYTES	512
/* Bytes in a ring that are worth a wake-up. */
#define WAKE_UP		(64ul << 10)
/* Faults, while there is new code: so soon that a program which is about to end has it. */
#define WAKE_UP_SOON	32

static int open_event(struct perf_event_attr attr, pid_t thread, int cpu,
		      bool on_exec)
{
	int fd;

	attr.size = sizeof(attr);
	attr.disabled = 1;
	attr.enable_on_exec = on_exec;
	attr.inherit = 1;
	attr.use_clockid = 1;
	attr.clockid = CLOCK_MONOTONIC;
	fd = syscall(SYS_perf_event_open, &attr, thread, cpu, -1,
		     PERF_FLAG_FD_CLOEXEC);
	/* Linux 5.12 is the first with build IDs. */
	if (fd < 0 && errno == EINVAL && attr.build_id) {
		attr.build_id = 0;
		fd = syscall(SYS_perf_event_open, &attr, thread, cpu, -1,
			     PERF_FLAG_FD_CLOEXEC);
	}
	return fd;
}

/* The callers, where the program keeps frame pointers and where it does not. */
static void add_chain(const struct rings *rings, struct perf_event_attr *attr)
{
	if (!(rings->flags & FT_CALL_CHAINS))
		return;
	attr->sample_type |= PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER |
			     PERF_SAMPLE_STACK_USER;
	attr->sample_max_stack = DEEPEST_CHAIN;
	attr->sample_regs_user = USER_REGS | FRAME_REGS;
	attr->sample_stack_user = STACK_BYTES;
}

static struct perf_event_attr faults_event(const struct rings *rings)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_PAGE_FAULTS,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_ADDR | PERF_SAMPLE_REGS_USER,
		.sample_regs_user = USER_REGS,
		.exclude_kernel = !(rings->flags & FT_KERNEL),
		.exclude_hv = 1,
		.exclude_callchain_kernel = 1,
		.mmap = 1,
		.mmap2 = 1,
		.mmap_data = 1,
		.build_id = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.sample_id_all = 1,
		.watermark = 1,
		.wakeup_watermark = rings->size / 8 < WAKE_UP ?
				    rings->size / 8 : WAKE_UP,
	};

	add_chain(rings, &attr);
	if (rings->flags & FT_MAPPED)
		attr.sample_type |= PERF_SAMPLE_DATA_PAGE_SIZE;
	return attr;
}

/* A sample of it is a header alone, which wakes who polls the ring. */
static const struct perf_event_attr waking_event = {
	.type = PERF_TYPE_SOFTWARE,
	.config = PERF_COUNT_SW_PAGE_FAULTS,
	.sample_period = WAKE_UP_SOON,
	.wakeup_events = 1,
	.exclude_kernel = 1,
	.exclude_hv = 1,
};

/*
 * Without privileges the kernel's limits allow a smaller ring than is asked for.
 * All rings get the same, so that no CPU takes the room of the others.
 */
static bool map_ring(struct rings *rings, int fd, int cpu)
{
	size_t page = sysconf(_SC_PAGESIZE);
	void *map;

	map = mmap(NULL, page + rings->size, PROT_READ | PROT_WRITE,
		   MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return false;
	rings->ring[rings->nr_rings++] = (struct ring) {
		.head = map, .data = (char *)map + page, .fd = fd, .waker = -1,
		.cpu = cpu,
	};
	return true;
}

static void close_all(struct rings *rings)
{
	size_t page = sysconf(_SC_PAGESIZE);

	for (size_t i = 0; i < rings->nr_rings; i++) {
		munmap(rings->ring[i].head, page + rings->size);
		if (rings->ring[i].waker >= 0)
			close(rings->ring[i].waker);
	}
	for (size_t i = 0; i < rings->nr_events; i++)
		close(rings->events[i]);
	rings->nr_rings = 0;
	rings->nr_events = 0;
}

/* Of a command alone: the code of a process that runs can be read later, too. */
static int open_waker(struct rings *rings, pid_t thread, int cpu)
{
	struct ring *ring = &rings->ring[rings->nr_rings - 1];

	ring->waker = open_event(waking_event, thread, cpu, true);
	if (ring->waker < 0 ||
	    ioctl(ring->waker, PERF_EVENT_IOC_SET_OUTPUT, ring->fd))
		return -errno;
	return 0;
}

/* The events of all threads on one CPU write to the ring of the first. */
static int open_on_cpu(struct rings *rings, int cpu, const pid_t *threads,
		       size_t nr_threads, bool on_exec)
{
	struct perf_event_attr attr = faults_event(rings);
	int first = -1, error;

	for (size_t i = 0; i < nr_threads; i++) {
		int fd = open_event(attr, threads[i], cpu, on_exec);

		/* A thread that has ended, or a CPU that is off. */
		if (fd < 0 && (errno == ESRCH || errno == ENODEV))
			continue;
		if (fd < 0)
			return -errno;
		rings->events[rings->nr_events++] = fd;
		if (first < 0) {
			first = fd;
			if (!map_ring(rings, fd, cpu))
				return -ENOBUFS;
			error = on_exec ? open_waker(rings, threads[i], cpu) : 0;
			if (error)
				return error;
		} else if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, first)) {
			return -errno;
		}
	}
	return 0;
}

static struct perf_event_attr call_event(const struct rings *rings,
					 uint64_t tracepoint)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.config = tracepoint,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
			       PERF_SAMPLE_TIME | PERF_SAMPLE_RAW,
		.exclude_kernel = 1,
		.exclude_callchain_kernel = 1,
	};

	add_chain(rings, &attr);
	return attr;
}

static bool open_calls(struct rings *rings, const uint64_t *tracepoints,
		       const pid_t *threads, size_t nr_threads, bool on_exec)
{
	if (!calls_room(&rings->calls, rings->nr_rings * nr_threads))
		return false;
	for (size_t i = 0; i < rings->nr_rings * nr_threads * FT_NR_CALLS; i++) {
		const struct ring *ring = &rings->ring[i / FT_NR_CALLS / nr_threads];
		pid_t thread = threads[i / FT_NR_CALLS % nr_threads];
		int fd = open_event(call_event(rings, tracepoints[i % FT_NR_CALLS]), thread,
				    ring->cpu, on_exec);

		if (fd < 0 && errno != ESRCH)
			return false;
		if (!calls_add(&rings->calls, fd, ring->fd))
			return false;
	}
	return true;
}

/* One event for each thread on each CPU: as many files as may be open. */
static void allow_files(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files))
		return;
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
}

int rings_open(struct rings *rings, const pid_t *threads, size_t nr_threads,
	       bool on_exec)
{
	uint64_t tracepoints[FT_NR_CALLS];
	cpu_set_t possible;
	size_t cpus = cpus_possible(&possible), page = sysconf(_SC_PAGESIZE);
	int error = 0;

	rings->ring = calloc(cpus, sizeof(*rings->ring));
	rings->events = calloc(cpus * nr_threads, sizeof(*rings->events));
	if (!rings->ring || !rings->events)
		return -ENOMEM;
	/* A command would inherit the limit. */
	if (!on_exec)
		allow_files();
	rings->size = LARGEST_RING;
	while (rings->size > page && rings->size * cpus > MOST_MEMORY)
		rings->size /= 2;
	for (; rings->size >= page; rings->size /= 2) {
		error = 0;
		for (size_t cpu = 0; cpu < CPU_SETSIZE && !error; cpu++)
			if (CPU_ISSET(cpu, &possible))
				error = open_on_cpu(rings, cpu, threads,
						    nr_threads, on_exec);
		if (error)
			close_all(rings);
		if (error != -ENOBUFS)
			break;
	}
	if (!error && !rings->nr_rings)
		error = -ESRCH;
	/* Without, such as for want of open files, faults alone are recorded. */
	if (!error && calls_find(tracepoints)) {
		if (open_calls(rings, tracepoints, threads, nr_threads, on_exec))
			rings->flags |= FT_SAYS_CALLS;
		else
			calls_close(&rings->calls);
	}
	for (size_t i = 0; i < rings->nr_events && !on_exec && !error; i++)
		ioctl(rings->events[i], PERF_EVENT_IOC_ENABLE, 0);
	if (!on_exec && !error)
		calls_set(&rings->calls, PERF_EVENT_IOC_ENABLE);
	return error;
}
