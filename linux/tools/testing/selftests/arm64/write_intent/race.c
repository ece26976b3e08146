// SPDX-License-Identifier: GPL-2.0
/*
 * Threads that add atomically against a thread that changes the mapping under
 * them. What was added is there in the end, or is gone for a reason; a signal
 * is one that the change calls for, and never one for a read of memory that
 * may be read.
 */
#define _GNU_SOURCE
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "write_intent.h"

#define SECONDS		60	/* of guest time, all races together */
#define WORKERS		2
#define PAGES		64

struct race {
	const char *name;
	void (*disturb)(struct race *race);
	bool (*prepare)(struct race *race);	/* or NULL; false: cannot be had */
	bool loses;		/* what was added may be discarded */
	int code;		/* of the SIGSEGVs that are due, or 0 */
	char *memory;
	size_t size;
	int userfaultfd;
	atomic_bool over;
	atomic_long added[PAGES];
	atomic_long wrong;	/* signals */
	long rounds;
	bool failed;
};

static size_t page;
static __thread sigjmp_buf back;
static __thread struct race *running;

static void on_signal(int signo, siginfo_t *info, void *context)
{
	const char *at = info->si_addr;
	const struct race *r = running;
	bool wnr = esr_of(context) & ESR_WNR;
	bool good = signo == SIGSEGV && at >= r->memory &&
		    at < r->memory + r->size;

	/*
	 * Memory that is there can always be read, so what is refused is a
	 * write. Memory that is not there is refused to both.
	 */
	if (info->si_code == SEGV_ACCERR)
		good = good && r->code == SEGV_ACCERR && wnr;
	else
		good = good && info->si_code == SEGV_MAPERR &&
		       r->code == SEGV_MAPERR;
	if (!good) {
		atomic_fetch_add(&running->wrong, 1);
		ksft_print_msg("signal %d, code %d, WnR %d at offset %ld\n",
			       signo, info->si_code, wnr, at - r->memory);
	}
	siglongjmp(back, 1);
}

static void add_until_over(struct race *r, bool lse)
{
	/* Not on the stack: they change between sigsetjmp() and siglongjmp(). */
	static __thread unsigned int turn, which;

	while (!atomic_load(&r->over)) {
		which = turn++ % PAGES;
		if (sigsetjmp(back, 1)) {
			sched_yield();
			continue;
		}
		/* Every other sweep by LL/SC. */
		if (lse && turn / PAGES % 2)
			touch_ldadd(r->memory + which * page);
		else
			touch_ldxr(r->memory + which * page);
		atomic_fetch_add(&r->added[which], 1);
	}
}

static void *work(void *argument)
{
	running = argument;
	add_until_over(argument, getauxval(AT_HWCAP) & HWCAP_ATOMICS);
	return NULL;
}

static void change_permissions(struct race *r)
{
	if (mprotect(r->memory, r->size, PROT_READ))
		r->failed = true;
	sched_yield();
	if (mprotect(r->memory, r->size, PROT_READ | PROT_WRITE))
		r->failed = true;
	sched_yield();
}

static void replace_mapping(struct race *r)
{
	munmap(r->memory, r->size);
	sched_yield();
	if (mmap(r->memory, r->size, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		r->failed = true;
	sched_yield();
}

static void discard(struct race *r)
{
	if (madvise(r->memory, r->size, MADV_DONTNEED))
		r->failed = true;
	sched_yield();
}

static uint64_t word_of(struct race *r, int i)
{
	return __atomic_load_n((uint64_t *)(r->memory + i * page), __ATOMIC_SEQ_CST);
}

/* The child's copy stands still while the parent's threads go on. */
static void fork_a_copy(struct race *r)
{
	int status = 0;
	pid_t child = fork();

	if (!child) {
		uint64_t seen[PAGES];

		for (int i = 0; i < PAGES; i++)
			seen[i] = word_of(r, i);
		sched_yield();
		for (int i = 0; i < PAGES; i++)
			if (word_of(r, i) != seen[i])
				_exit(1);
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || status)
		r->failed = true;
}

static bool register_monitor(struct race *r)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = {
		.range = { (uintptr_t)r->memory, r->size },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	r->userfaultfd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	return r->userfaultfd >= 0 && !ioctl(r->userfaultfd, UFFDIO_API, &api) &&
	       !ioctl(r->userfaultfd, UFFDIO_REGISTER, &range);
}

/* Discards, and serves what then is missing for about as long. */
static void discard_and_serve(struct race *r)
{
	static char zeroes[65536];
	struct pollfd fd = { .fd = r->userfaultfd, .events = POLLIN };
	struct uffd_msg message;

	discard(r);
	for (int i = 0; i < 2 * PAGES && poll(&fd, 1, 1) > 0; i++) {
		struct uffdio_copy copy = {
			.src = (uintptr_t)zeroes, .len = page,
		};

		if (read(r->userfaultfd, &message, sizeof(message)) < 0)
			continue;
		copy.dst = message.arg.pagefault.address & ~(page - 1);
		/* It is there already if two threads asked for it: wake both. */
		if (ioctl(r->userfaultfd, UFFDIO_COPY, &copy)) {
			struct uffdio_range there = { copy.dst, page };

			ioctl(r->userfaultfd, UFFDIO_WAKE, &there);
		}
	}
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void run(struct race *r, double seconds)
{
	pthread_t workers[WORKERS];
	double end;

	r->size = PAGES * page;
	r->memory = mmap(NULL, r->size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (r->memory == MAP_FAILED)
		ksft_exit_fail_perror("mmap");
	if (r->prepare && !r->prepare(r)) {
		ksft_test_result_skip("%s: not available\n", r->name);
		return;
	}
	for (int i = 0; i < WORKERS; i++)
		if (pthread_create(&workers[i], NULL, work, r))
			ksft_exit_fail_perror("pthread_create");
	end = now() + seconds;
	while (now() < end) {
		r->disturb(r);
		r->rounds++;
	}
	atomic_store(&r->over, true);
	/* Without its monitor no thread waits for a page any more. */
	if (r->prepare)
		close(r->userfaultfd);
	for (int i = 0; i < WORKERS; i++)
		pthread_join(workers[i], NULL);

	for (int i = 0; i < PAGES; i++) {
		uint64_t there = word_of(r, i);
		uint64_t added = atomic_load(&r->added[i]);

		if (r->loses ? there > added : there != added) {
			r->failed = true;
			ksft_print_msg("%lu were added to page %d, %lu are there\n",
				       added, i, there);
		}
	}
	munmap(r->memory, r->size);
	ksft_test_result(!r->failed && !r->wrong && r->rounds,
			 "%s: no wrong result and no wrong signal\n", r->name);
	ksft_print_msg("%ld rounds\n", r->rounds);
}

static struct race races[] = {
	{ .name = "against mprotect", .disturb = change_permissions,
	  .code = SEGV_ACCERR },
	{ .name = "against munmap and mmap", .disturb = replace_mapping,
	  .code = SEGV_MAPERR, .loses = true },
	{ .name = "against madvise(DONTNEED)", .disturb = discard,
	  .loses = true },
	{ .name = "against fork", .disturb = fork_a_copy },
	{ .name = "against userfaultfd", .disturb = discard_and_serve,
	  .prepare = register_monitor, .loses = true },
};

int main(void)
{
	const size_t count = ARRAY_SIZE(races);
	struct sigaction action = {
		.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_NODEFER,
	};

	ksft_print_header();
	page = getpagesize();
	if (!set_mode(ON))
		ksft_exit_skip("the kernel has no write-intent faults\n");
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);

	ksft_set_plan(count);
	for (size_t i = 0; i < count; i++)
		run(&races[i], (double)SECONDS / count);
	ksft_finished();
}
