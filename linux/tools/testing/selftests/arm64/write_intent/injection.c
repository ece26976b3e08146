// SPDX-License-Identifier: GPL-2.0
/*
 * Allocations that fail on the way of a fault: each of them in turn, for the
 * first touch by each kind of instruction. The fault is tried again and the
 * touch does what it always does; no signal comes of it, and no memory is lost.
 */
#define _GNU_SOURCE
#include <errno.h>

#include "write_intent.h"

#define DEBUGFS		"/sys/kernel/debug/fail_page_alloc/"
#define FAIL_NTH	"/proc/thread-self/fail-nth"
/* More allocations than a fault makes: page tables, anon_vma, page, charge. */
#define MOST		64
#define WARM_ROUNDS	20
#define LEAK_ROUNDS	60
/* Of the objects that a fault makes: anon_vma_chain, in bytes. */
#define SMALLEST	64L
#define GROUP		CGROUPS "/injected"

static size_t page;

/* Allocations for users and those that may wait are spared unless asked for. */
static bool prepare(void)
{
	return set(DEBUGFS "ignore-gfp-wait", "N") &&
	       set(DEBUGFS "ignore-gfp-highmem", "N") &&
	       set(DEBUGFS "min-order", "0") && set(DEBUGFS "verbose", "0") &&
	       set("/sys/kernel/debug/failslab/ignore-gfp-wait", "N") &&
	       set("/sys/kernel/debug/failslab/verbose", "0");
}

/* The kernel counts down where an allocation could fail, and fails the last. */
static int open_fail_nth(void)
{
	int fd = open(FAIL_NTH, O_RDWR);

	if (fd < 0)
		ksft_exit_fail_perror(FAIL_NTH);
	return fd;
}

static void arm(int fd, int nth)
{
	char text[16];
	int length = snprintf(text, sizeof(text), "%d", nth);

	if (pwrite(fd, text, length, 0) != length)
		ksft_exit_fail_perror(FAIL_NTH);
}

/* Returns whether an allocation has failed since arm(), and lets the rest succeed. */
static bool disarm(int fd)
{
	char text[16] = "";
	bool failed;

	if (pread(fd, text, sizeof(text) - 1, 0) <= 0)
		ksft_exit_fail_perror(FAIL_NTH);
	failed = !atoi(text);
	arm(fd, 0);
	return failed;
}

/*
 * A place in the address space where not even the tables are there, so that
 * all the allocations of a fault are made.
 */
static void *map(void)
{
	const size_t apart = 1ul << 30;
	char *p = mmap(NULL, 2 * apart, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED || mprotect(p + apart, page, PROT_READ | PROT_WRITE))
		ksft_exit_fail_perror("mmap");
	return p;
}

static bool touch_with_failures(const struct instruction *i, int fd, int *failures)
{
	const size_t apart = 1ul << 30;
	bool good = true;

	*failures = 0;
	for (int nth = 1; nth < MOST; nth++) {
		char *p = map();
		struct outcome outcome;
		bool failed;

		arm(fd, nth);
		outcome = touch(i, p + apart);
		failed = disarm(fd);
		if (outcome.signo || *(uint64_t *)(p + apart) != i->result) {
			print_outcome(i->name, &outcome);
			good = false;
		}
		munmap(p, 2 * apart);
		if (!failed)
			return good;
		++*failures;
	}
	ksft_print_msg("more than %d allocations in a fault\n", MOST);
	return false;
}

/* The sum of two lines of a file of names and numbers. */
static long sum_of(const char *path, const char *one, const char *other)
{
	FILE *file = fopen(path, "r");
	char line[128], name[64];
	long sum = 0, number;

	if (!file)
		ksft_exit_fail_perror(path);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "%63[^: ]%*[: ]%ld", name, &number) == 2 &&
		    (!strcmp(name, one) || !strcmp(name, other)))
			sum += number;
	fclose(file);
	return sum;
}

/*
 * Pages that nobody uses, in KiB. KASAN keeps objects of the slab for a while
 * after they are freed: those count as unused here.
 */
static long unused_pages(void)
{
	return sum_of("/proc/meminfo", "MemFree", "Slab");
}

/*
 * Bytes of objects that this process is charged for, without those that KASAN
 * keeps. The group's statistics lag behind by up to two seconds; what it has
 * in use is no better, that runs ahead by up to 64 pages a CPU.
 */
static long charged_objects(void)
{
	sleep(3);
	return sum_of(GROUP "/memory.stat", "slab_reclaimable",
		      "slab_unreclaimable");
}

static void enter_group(void)
{
	make_group(GROUP);
	if (!write_file(GROUP "/cgroup.procs", "0")) {
		leave_groups(GROUP);
		ksft_exit_skip("no cgroup2 with CONFIG_MEMCG\n");
	}
}

static void test_instruction(const struct instruction *i, int fd)
{
	int failures;
	bool good;

	if (!instruction_available(i)) {
		ksft_test_result_skip("%s: no LSE\n", i->name);
		return;
	}
	good = touch_with_failures(i, fd, &failures);
	ksft_print_msg("%d allocations failed\n", failures);
	ksft_test_result(good && failures,
			 "%s: each allocation of its fault fails once\n", i->name);
}

/* Touches with each failure in turn; returns how many failures there were. */
static long touch_often(int fd, int rounds)
{
	long failures = 0;

	for (int round = 0; round < rounds; round++) {
		for (size_t i = 0; i < NR_INSTRUCTIONS; i++) {
			int here = 0;

			if (instruction_available(&instructions[i]))
				touch_with_failures(&instructions[i], fd, &here);
			failures += here;
		}
	}
	return failures;
}

/*
 * What a failure leaves behind once, it leaves each time. The kernel's own
 * reserves, lists of pages per CPU and charges ahead of need, stay below a
 * tenth of what one lost page or object for each failure would be.
 */
static void test_leak(int fd)
{
	long unused, before, bytes, failures;

	touch_often(fd, WARM_ROUNDS);
	unused = unused_pages();
	before = charged_objects();
	failures = touch_often(fd, LEAK_ROUNDS);
	unused -= unused_pages();
	bytes = charged_objects() - before;
	ksft_print_msg("after %ld failures %ld KiB of pages fewer, %ld bytes of objects more\n",
		       failures, unused, bytes);
	ksft_test_result(unused < failures * (long)(page / 1024) / 10,
			 "failed allocations lose no page\n");
	ksft_test_result(before > 0 && bytes < failures * SMALLEST / 10,
			 "failed allocations lose no object\n");
}

int main(void)
{
	int fd;

	ksft_print_header();
	page = getpagesize();
	if (!set_mode(ON))
		ksft_exit_skip("the kernel has no write-intent faults\n");
	if (!prepare())
		ksft_exit_skip("no CONFIG_FAIL_PAGE_ALLOC and CONFIG_FAILSLAB\n");
	catch_signals();
	enter_group();
	fd = open_fail_nth();

	ksft_set_plan(NR_INSTRUCTIONS + 2);
	for (size_t i = 0; i < NR_INSTRUCTIONS; i++)
		test_instruction(&instructions[i], fd);
	test_leak(fd);
	leave_groups(GROUP);
	ksft_finished();
}
