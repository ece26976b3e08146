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
#define LEAK_ROUNDS	200

static size_t page;

static bool write_file(const char *path, const char *text)
{
	ssize_t length = strlen(text);
	int fd = open(path, O_WRONLY);
	bool written;

	if (fd < 0)
		return false;
	written = write(fd, text, length) == length;
	close(fd);
	return written;
}

/* Allocations for users and those that may wait are spared unless asked for. */
static bool prepare(void)
{
	return write_file(DEBUGFS "ignore-gfp-wait", "N") &&
	       write_file(DEBUGFS "ignore-gfp-highmem", "N") &&
	       write_file(DEBUGFS "min-order", "0") &&
	       write_file(DEBUGFS "verbose", "0") &&
	       write_file("/sys/kernel/debug/failslab/ignore-gfp-wait", "N") &&
	       write_file("/sys/kernel/debug/failslab/verbose", "0");
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

static long free_kilobytes(void)
{
	FILE *file = fopen("/proc/meminfo", "r");
	char line[128];
	long kilobytes = -1;

	while (file && kilobytes < 0 && fgets(line, sizeof(line), file))
		sscanf(line, "MemFree: %ld kB", &kilobytes);
	if (file)
		fclose(file);
	return kilobytes;
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

/* What a failure left behind once, it leaves each time. */
static void test_leak(int fd)
{
	long before, after;
	int failures;

	for (int round = 0; round < LEAK_ROUNDS / 4; round++)
		for (size_t i = 0; i < NR_INSTRUCTIONS; i++)
			if (instruction_available(&instructions[i]))
				touch_with_failures(&instructions[i], fd, &failures);
	before = free_kilobytes();
	for (int round = 0; round < LEAK_ROUNDS; round++)
		for (size_t i = 0; i < NR_INSTRUCTIONS; i++)
			if (instruction_available(&instructions[i]))
				touch_with_failures(&instructions[i], fd, &failures);
	after = free_kilobytes();
	/* A page a touch would be a hundred times as much. */
	ksft_print_msg("%ld KiB free before, %ld after\n", before, after);
	ksft_test_result(before - after < LEAK_ROUNDS * (long)(page / 1024),
			 "failed allocations leave no memory behind\n");
}

int main(void)
{
	int fd;

	ksft_print_header();
	page = getpagesize();
	if (!set_mode(WITH_EXCLUSIVE))
		ksft_exit_skip("the kernel has no write-intent faults\n");
	if (!prepare())
		ksft_exit_skip("no CONFIG_FAIL_PAGE_ALLOC and CONFIG_FAILSLAB\n");
	catch_signals();
	fd = open_fail_nth();

	ksft_set_plan(NR_INSTRUCTIONS + 1);
	for (size_t i = 0; i < NR_INSTRUCTIONS; i++)
		test_instruction(&instructions[i], fd);
	test_leak(fd);
	ksft_finished();
}
