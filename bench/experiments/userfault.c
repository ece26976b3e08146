// SPDX-License-Identifier: GPL-2.0
/*
 * userfaultfd(2): memory that a program fills and protects by itself, with and
 * without a fault that another thread answers.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cpus.h"
#include "operation.h"

#define NO_USERFAULTFD							\
	"no userfaultfd(2) here (CONFIG_USERFAULTFD, 5.11 or later)"

/* The thread that answers faults. */
struct answerer {
	struct area *area;
	int (*answer)(struct area *area, char *at, size_t size);
	pthread_t thread;
	pthread_barrier_t ready;
};

/* All return 0 or a negative errno. */
static int copy_in(struct area *area, char *to, size_t size)
{
	struct uffdio_copy copy = {
		.dst = (uintptr_t)to, .src = (uintptr_t)area->other.start,
		.len = size,
	};

	return ioctl(area->other_fd, UFFDIO_COPY, &copy) ? -errno : 0;
}

static int zero_in(struct area *area, char *to, size_t size)
{
	struct uffdio_zeropage zero = {
		.range = { .start = (uintptr_t)to, .len = size },
	};

	return ioctl(area->other_fd, UFFDIO_ZEROPAGE, &zero) ? -errno : 0;
}

static int set_protection(struct area *area, char *at, size_t size, int mode)
{
	struct uffdio_writeprotect protect = {
		.range = { .start = (uintptr_t)at, .len = size }, .mode = mode,
	};

	return ioctl(area->other_fd, UFFDIO_WRITEPROTECT, &protect) ? -errno : 0;
}

static int forbid(struct area *area, char *at, size_t size)
{
	return set_protection(area, at, size, UFFDIO_WRITEPROTECT_MODE_WP);
}

static int permit(struct area *area, char *at, size_t size)
{
	return set_protection(area, at, size, 0);
}

/* To answer faults of the kernel needs a privilege; here only the program faults. */
static const char *watch(struct area *area, int mode)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = mode == UFFDIO_REGISTER_MODE_WP ?
			    UFFD_FEATURE_PAGEFAULT_FLAG_WP : 0,
	};
	struct uffdio_register range = {
		.range = {
			.start = (uintptr_t)area->memory.start,
			.len = area->memory.size,
		},
		.mode = mode,
	};

	if (area_is_hugetlb(area))
		return "faults are answered in base pages, which hugeTLB has not";
	area->other_fd = syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	if (area->other_fd < 0)
		return NO_USERFAULTFD;
	if (ioctl(area->other_fd, UFFDIO_API, &api))
		return "this CPU or kernel has no write protection by userfaultfd(2)";
	return ioctl(area->other_fd, UFFDIO_REGISTER, &range) ?
	       "this kernel has no userfaultfd(2) for such memory" : NULL;
}

/* What the pages held is gone, also from shared memory. */
static const char *watch_missing(struct area *area)
{
	const struct memory *memory = &area->memory;

	if (madvise(memory->start, memory->size,
		    area->fd < 0 ? MADV_DONTNEED : MADV_REMOVE))
		return "this kernel cannot empty such memory";
	if (area_get_other(area, area_stride()))
		return "there is no room for a buffer";
	memset(area->other.start, 1, area->other.size);
	return watch(area, UFFDIO_REGISTER_MODE_MISSING);
}

static const char *watch_writes(struct area *area)
{
	return watch(area, UFFDIO_REGISTER_MODE_WP);
}

static const char *forbid_writes(struct area *area)
{
	const char *why = watch_writes(area);

	if (!why && forbid(area, area->memory.start, area->memory.size))
		why = "UFFDIO_WRITEPROTECT failed";
	return why;
}

/* The thread has its stack before the first fault. */
static void *answer_faults(void *arg)
{
	struct answerer *answerer = arg;
	struct area *area = answerer->area;
	const size_t page = page_size();
	struct uffd_msg fault;

	answerer->answer(area, area->memory.start, 0);	/* it is refused */
	pthread_barrier_wait(&answerer->ready);
	while (read(area->other_fd, &fault, sizeof(fault)) == sizeof(fault)) {
		char *at = (char *)(uintptr_t)(fault.arg.pagefault.address & -page);

		/* Otherwise the fault would wait forever. */
		if (answerer->answer(area, at, page))
			abort();
	}
	return NULL;
}

/* Both share a CPU: each fault is two switches, wherever it runs. */
static const char *start_thread(struct area *area,
				int (*answer)(struct area *area, char *at,
					      size_t size))
{
	struct answerer *answerer = calloc(1, sizeof(*answerer));

	if (!answerer)
		return "no memory for a thread: free some";
	answerer->area = area;
	answerer->answer = answer;
	cpus_pin(0);
	pthread_barrier_init(&answerer->ready, NULL, 2);
	if (pthread_create(&answerer->thread, NULL, answer_faults, answerer)) {
		free(answerer);
		return "no thread can be started: allow more processes";
	}
	area->state = answerer;
	pthread_barrier_wait(&answerer->ready);
	return NULL;
}

static void end_thread(struct area *area)
{
	struct answerer *answerer = area->state;

	if (!answerer)
		return;
	pthread_cancel(answerer->thread);
	pthread_join(answerer->thread, NULL);
	pthread_barrier_destroy(&answerer->ready);
	free(answerer);
}

static const char *answer_missing(struct area *area)
{
	const char *why = watch_missing(area);

	return why ? why : start_thread(area, copy_in);
}

static const char *answer_writes(struct area *area)
{
	const char *why = forbid_writes(area);

	return why ? why : start_thread(area, permit);
}

static int64_t fill_pieces(struct area *area,
			   int (*fill)(struct area *area, char *to, size_t size))
{
	const size_t stride = area_stride();

	for (size_t at = 0; at < area->memory.size; at += stride) {
		int error = fill(area, area->memory.start + at, stride);

		if (error)
			return error;
	}
	return area->memory.size / stride;
}

static int64_t copy_pieces(struct area *area)
{
	return fill_pieces(area, copy_in);
}

static int64_t zero_pieces(struct area *area)
{
	return fill_pieces(area, zero_in);
}

static int64_t forbid_all(struct area *area)
{
	int error = forbid(area, area->memory.start, area->memory.size);

	return error ? error : 1;
}

static int64_t permit_all(struct area *area)
{
	int error = permit(area, area->memory.start, area->memory.size);

	return error ? error : 1;
}

static int64_t store(struct area *area)
{
	area_write(area);
	return area->memory.size / page_size();
}

static const struct operation operations[] = {
	{ "copy", watch_missing, copy_pieces },
	{ "zero", watch_missing, zero_pieces },
	{ "missing", answer_missing, store },
	{ "protect", watch_writes, forbid_all },
	{ "permit", forbid_writes, permit_all },
	{ "protected", answer_writes, store },
	{ }
};

static const char *operation_name(size_t place)
{
	return operations[place].name;
}

static enum status measure(struct run *run)
{
	return operation_measure(run, operations, end_thread);
}

static const struct param params[] = {
	OPERATION_PARAM("missing"),
	{ }
};

static const struct metric metrics[] = {
	OPERATIONS_METRIC,
	{ }
};

static const struct experiment userfault = {
	.name = "userfault",
	.summary = "userfaultfd: memory that the program fills and protects by itself",
	.detail =
"copy and zero: UFFDIO_COPY and UFFDIO_ZEROPAGE fill the memory, which was emptied,\n"
"16 base pages with each call, without a fault. missing: stores to each base page of\n"
"emptied memory; a thread on the same CPU answers each fault by UFFDIO_COPY. protect\n"
"and permit: one UFFDIO_WRITEPROTECT for all memory. protected: stores to each base\n"
"page after that; the thread permits them page by page. Nothing is protected where\n"
"nothing is mapped.",
	.example = "--operation missing --memory 4k",
	.params = params,
	.metrics = metrics,
	.shared_params = area_param,
	.shared_metrics = area_metric,
	.measure = measure,
};

EXPERIMENT(userfault);
