// SPDX-License-Identifier: GPL-2.0
/*
 * What a userfaultfd monitor is told of the first touch by each kind of
 * instruction, and which signal a task gets where the monitor asked for one.
 * Both are what they are without the feature: the fault stays the read that the
 * hardware reported.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "write_intent.h"

#ifndef UFFD_FEATURE_WP_UNPOPULATED	/* headers older than 6.4 */
#define UFFD_FEATURE_WP_UNPOPULATED	_BITUL(13)
#endif

enum event { MISSING, MISSING_SHMEM, MINOR_SHMEM, WRITE_PROTECTED, NR_KINDS };

static const struct {
	const char *name;
	uint64_t mode;
	uint64_t features;
} kinds[] = {
	[MISSING] = { "missing, anonymous", UFFDIO_REGISTER_MODE_MISSING, 0 },
	[MISSING_SHMEM] = { "missing, shmem", UFFDIO_REGISTER_MODE_MISSING,
			    UFFD_FEATURE_MISSING_SHMEM },
	[MINOR_SHMEM] = { "minor, shmem", UFFDIO_REGISTER_MODE_MINOR,
			  UFFD_FEATURE_MINOR_SHMEM },
	[WRITE_PROTECTED] = { "write-protected, unpopulated",
			      UFFDIO_REGISTER_MODE_WP,
			      UFFD_FEATURE_WP_UNPOPULATED },
};

#define MAX_EVENTS	4

struct monitor {
	int fd;
	int wake;		/* the end of the pipe that ends the thread */
	size_t page;
	enum event kind;
	bool revoke;		/* make the page read-only before it resolves */
	int events;
	uint64_t flags[MAX_EVENTS];
};

static size_t page;

static void resolve(struct monitor *m, uint64_t address)
{
	static char zeroes[65536];
	uint64_t start = address & ~(m->page - 1);
	struct uffdio_copy copy = {
		.dst = start, .src = (uintptr_t)zeroes, .len = m->page,
	};
	struct uffdio_continue map = { .range = { start, m->page } };
	struct uffdio_writeprotect unprotect = { .range = { start, m->page } };
	int failed;

	if (m->kind == WRITE_PROTECTED)
		failed = ioctl(m->fd, UFFDIO_WRITEPROTECT, &unprotect);
	else if (m->kind == MINOR_SHMEM)
		failed = ioctl(m->fd, UFFDIO_CONTINUE, &map);
	else
		failed = ioctl(m->fd, UFFDIO_COPY, &copy);
	if (failed)
		ksft_exit_fail_perror("resolving a fault");
}

static void *run_monitor(void *argument)
{
	struct monitor *m = argument;
	struct pollfd fds[] = {
		{ .fd = m->fd, .events = POLLIN },
		{ .fd = m->wake, .events = POLLIN },
	};
	struct uffd_msg message;

	for (;;) {
		poll(fds, 2, -1);
		if (read(m->fd, &message, sizeof(message)) == sizeof(message)) {
			if (m->events < MAX_EVENTS)
				m->flags[m->events] =
					message.arg.pagefault.flags;
			m->events++;
			if (m->revoke &&
			    mprotect((void *)(message.arg.pagefault.address &
					      ~(m->page - 1)), m->page, PROT_READ))
				ksft_exit_fail_perror("mprotect");
			resolve(m, message.arg.pagefault.address);
		} else if (fds[1].revents) {
			return NULL;
		}
	}
}

static int open_userfaultfd(uint64_t features)
{
	struct uffdio_api api = { .api = UFFD_API, .features = features };
	int fd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (fd >= 0 && ioctl(fd, UFFDIO_API, &api)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* One page with a monitor for faults of this kind, NULL if there is none. */
static void *map(enum event kind, int uffd)
{
	struct uffdio_register range = { .mode = kinds[kind].mode };
	struct uffdio_writeprotect protect = {
		.mode = UFFDIO_WRITEPROTECT_MODE_WP,
	};
	void *p;
	int fd = -1;

	if (kind == MISSING_SHMEM || kind == MINOR_SHMEM) {
		static const char zeroes[65536];

		fd = memfd_create("write_intent", 0);
		if (fd < 0 || ftruncate(fd, page))
			ksft_exit_fail_perror("memfd");
		if (kind == MINOR_SHMEM &&
		    pwrite(fd, zeroes, page, 0) != (ssize_t)page)
			ksft_exit_fail_perror("memfd");
	}
	p = mmap(NULL, page, PROT_READ | PROT_WRITE,
		 fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	range.range.start = (uintptr_t)p;
	range.range.len = page;
	if (ioctl(uffd, UFFDIO_REGISTER, &range)) {
		munmap(p, page);
		return NULL;
	}
	protect.range = range.range;
	if (kind == WRITE_PROTECTED &&
	    ioctl(uffd, UFFDIO_WRITEPROTECT, &protect))
		ksft_exit_fail_perror("UFFDIO_WRITEPROTECT");
	return p;
}

struct result {
	int events;
	uint64_t flags;		/* of the first */
	uint64_t word;
	struct outcome outcome;
};

static bool watch(const struct instruction *i, enum event kind, enum mode mode,
		  uint64_t features, bool revoke, struct result *result)
{
	struct monitor monitor = {
		.page = page, .kind = kind, .revoke = revoke,
	};
	pthread_t thread;
	int pipes[2];
	void *p;

	monitor.fd = open_userfaultfd(kinds[kind].features | features);
	if (monitor.fd < 0)
		return false;
	p = map(kind, monitor.fd);
	if (!p) {
		close(monitor.fd);
		return false;
	}
	if (pipe(pipes))
		ksft_exit_fail_perror("pipe");
	monitor.wake = pipes[0];
	pthread_create(&thread, NULL, run_monitor, &monitor);
	set_mode(mode);
	result->outcome = touch(i, p);
	close(pipes[1]);
	pthread_join(thread, NULL);
	close(pipes[0]);
	close(monitor.fd);	/* and the page has no monitor any more */
	result->events = monitor.events;
	result->flags = monitor.flags[0];
	result->word = *(uint64_t *)p;
	munmap(p, page);
	return true;
}

static void test_events(const struct instruction *i, enum event kind)
{
	struct result without, with;
	char name[96];
	bool good;

	snprintf(name, sizeof(name), "%s: the monitor's events, %s", i->name,
		 kinds[kind].name);
	if (!instruction_available(i) ||
	    !watch(i, kind, OFF, 0, false, &without)) {
		ksft_test_result_skip("%s: not available\n", name);
		return;
	}
	good = !without.outcome.signo && without.word == i->result;
	for (enum mode mode = ON; mode < NR_MODES; mode++) {
		watch(i, kind, mode, 0, false, &with);
		if (with.outcome.signo || with.word != i->result ||
		    with.events != without.events || with.flags != without.flags) {
			good = false;
			ksft_print_msg("%s: %d events, flags %lx, signal %d, contents %lu\n",
				       mode_names[mode], with.events, with.flags,
				       with.outcome.signo, with.word);
			ksft_print_msg("where %d events, flags %lx were due\n",
				       without.events, without.flags);
		}
	}
	ksft_test_result(good, "%s\n", name);
}

static void test_sigbus(const struct instruction *i, enum event kind)
{
	struct result without, with;
	char name[96];
	bool good = true;

	snprintf(name, sizeof(name), "%s: SIGBUS for the monitor's fault, %s",
		 i->name, kinds[kind].name);
	if (!instruction_available(i) ||
	    !watch(i, kind, OFF, UFFD_FEATURE_SIGBUS, false,
		   &without)) {
		ksft_test_result_skip("%s: not available\n", name);
		return;
	}
	for (enum mode mode = ON; mode < NR_MODES; mode++) {
		watch(i, kind, mode, UFFD_FEATURE_SIGBUS, false, &with);
		if (!same_signal(&with.outcome, &without.outcome) ||
		    with.events || with.word) {
			good = false;
			print_outcome("off", &without.outcome);
			print_outcome(mode_names[mode], &with.outcome);
		}
	}
	/* Without this the comparison would be of nothing with nothing. */
	if (kind == MISSING && without.outcome.signo != SIGBUS)
		good = false;
	if (i->intent == RMW && kind == WRITE_PROTECTED &&
	    (without.outcome.signo != SIGBUS || !without.outcome.wnr))
		good = false;
	ksft_test_result(good, "%s\n", name);
}

/*
 * The fault waits for its monitor, and is tried again when that has answered.
 * By then the page is read-only: what was decided at the first try must be
 * forgotten, and the write be refused as a write.
 */
static void test_retry(const struct instruction *i)
{
	struct result without, with;
	char name[96];
	bool good;

	snprintf(name, sizeof(name), "%s: read-only before the second try", i->name);
	if (!instruction_available(i) ||
	    !watch(i, MISSING, OFF, 0, true, &without)) {
		ksft_test_result_skip("%s: not available\n", name);
		return;
	}
	/* A compare that fails wants to write all the same. */
	if (i->result || i->intent == RMW)
		good = without.outcome.signo == SIGSEGV && without.outcome.wnr;
	else
		good = !without.outcome.signo;
	for (enum mode mode = ON; mode < NR_MODES; mode++) {
		watch(i, MISSING, mode, 0, true, &with);
		if (!same_signal(&with.outcome, &without.outcome) || with.word) {
			good = false;
			print_outcome("off", &without.outcome);
			print_outcome(mode_names[mode], &with.outcome);
		}
	}
	ksft_test_result(good, "%s\n", name);
}

int main(void)
{
	int fd;

	ksft_print_header();
	page = getpagesize();
	if (!set_mode(ON) || !set_mode(OFF))
		ksft_exit_skip("the kernel has no write-intent faults\n");
	fd = open_userfaultfd(0);
	if (fd < 0)
		ksft_exit_skip("the kernel has no userfaultfd\n");
	close(fd);
	catch_signals();

	ksft_set_plan(NR_INSTRUCTIONS * (NR_KINDS + 3));
	for (size_t i = 0; i < NR_INSTRUCTIONS; i++) {
		for (enum event kind = MISSING; kind < NR_KINDS; kind++)
			test_events(&instructions[i], kind);
		test_sigbus(&instructions[i], MISSING);
		test_sigbus(&instructions[i], WRITE_PROTECTED);
		test_retry(&instructions[i]);
	}

	ksft_finished();
}
