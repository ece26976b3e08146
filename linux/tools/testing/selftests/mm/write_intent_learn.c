// SPDX-License-Identifier: GPL-2.0
/*
 * Write intent that is learned: which reads of untouched memory get a page, by
 * the faults that follow, and how many pages can be had in vain.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../kselftest.h"

#define SYSCTL	"/proc/sys/vm/write_intent"
#define PAGES	1000
/* include/linux/write_intent_learn.h: pages that a lesson pays for */
#define CREDIT	63
#define THREADS	8
#define LESSONS	16

static size_t page;
static char mode[32];

/* Two instructions that read: noipa, because neither may be copied or left out. */
static __attribute__((noipa)) void read_first(const char *p)
{
	asm volatile("" : : "r" (*p));
}

static __attribute__((noipa)) void read_second(const char *p)
{
	asm volatile("" : : "r" (*p));
}

static bool set_mode(const char *text)
{
	int fd = open(SYSCTL, O_WRONLY);
	bool set;

	if (fd < 0)
		return false;
	set = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	close(fd);
	return set;
}

static void restore_mode(void)
{
	set_mode(mode);
}

static bool remember_mode(void)
{
	int fd = open(SYSCTL, O_RDONLY);
	bool read_it;

	if (fd < 0)
		return false;
	read_it = read(fd, mode, sizeof(mode) - 1) > 0;
	close(fd);
	return read_it;
}

static char *map(size_t size, int prot)
{
	char *p = mmap(NULL, size, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		ksft_exit_fail_perror("mmap");
	madvise(p, size, MADV_NOHUGEPAGE);
	return p;
}

static long faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_minflt;
}

/* Faults of @pages updates of as many fresh pages */
static long update(char *p, int pages)
{
	long before;

	faults();	/* takes those of the stack */
	before = faults();
	for (int i = 0; i < pages; i++) {
		read_first(p + i * page);
		p[i * page] = 1;
	}
	return faults() - before;
}

static long update_fresh(int pages)
{
	char *p = map(pages * page, PROT_READ | PROT_WRITE);
	long taken = update(p, pages);

	munmap(p, pages * page);
	return taken;
}

/* What the lesson after one that paid for @grant pages pays for */
static long next_grant(long grant)
{
	return 2 * grant + 1 < CREDIT ? 2 * grant + 1 : CREDIT;
}

/* What a thread that knows nothing takes: two faults where there is no credit */
static long expected(int pages)
{
	long taken = 0, grant = 0, credit = 0;

	for (int i = 0; i < pages; i++) {
		taken++;
		if (credit) {
			credit--;
			continue;
		}
		taken++;
		grant = next_grant(grant);
		credit = grant;
	}
	return taken;
}

/* Pages of their own among @pages from @p, all of which have been read */
static long own_pages(char *p, int pages)
{
	long before = faults();

	for (int i = 0; i < pages; i++)
		p[i * page] = 1;
	return pages - (faults() - before);
}

static void *in_thread(void *taken)
{
	*(long *)taken = update_fresh(PAGES);
	return NULL;
}

static void test_an_update_is_learned(void)
{
	pthread_t thread;
	long taken;

	pthread_create(&thread, NULL, in_thread, &taken);
	pthread_join(thread, NULL);
	ksft_print_msg("%ld faults for %d pages\n", taken, PAGES);
	ksft_test_result(taken == expected(PAGES), "an update is learned\n");
}

static void test_off_learns_nothing(void)
{
	long taken;

	set_mode("off");
	taken = update_fresh(PAGES);
	set_mode("learn");
	ksft_test_result(taken == 2 * PAGES, "off, each update takes two faults\n");
}

static void test_a_thread_begins_anew(void)
{
	pthread_t thread;
	long taken;

	update_fresh(PAGES);
	pthread_create(&thread, NULL, in_thread, &taken);
	pthread_join(thread, NULL);
	ksft_test_result(taken == expected(PAGES), "a thread begins anew\n");
}

/* The exit status of a process tells the faults of its first updates. */
#define FIRST	8

static void test_a_child_begins_anew(void)
{
	char *p = map(FIRST * page, PROT_READ | PROT_WRITE);
	int status;
	pid_t pid;

	update_fresh(PAGES);
	pid = fork();
	if (!pid)
		_exit(update(p, FIRST));
	waitpid(pid, &status, 0);
	ksft_test_result(WEXITSTATUS(status) == expected(FIRST), "a child begins anew\n");
	munmap(p, FIRST * page);
}

static void test_a_program_begins_anew(void)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		/* The same instruction is to have the same pc again. */
		personality(ADDR_NO_RANDOMIZE);
		execl("/proc/self/exe", "write_intent_learn", "exec", NULL);
		_exit(126);
	}
	waitpid(pid, &status, 0);
	ksft_test_result(WEXITSTATUS(status) == expected(FIRST), "a program begins anew\n");
}

static int program(const char *step)
{
	if (!strcmp(step, "exec")) {
		update_fresh(PAGES);
		execl("/proc/self/exe", "write_intent_learn", "first", NULL);
		return 126;
	}
	return update_fresh(FIRST);
}

static void test_reads_get_no_page(void)
{
	char *p = map(PAGES * page, PROT_READ | PROT_WRITE);

	update_fresh(PAGES);
	for (int i = 0; i < PAGES; i++)
		read_second(p + i * page);
	ksft_test_result(!own_pages(p, PAGES), "another instruction's reads get no page\n");
	munmap(p, PAGES * page);
}

/* Read-only while it is read, or with a userfaultfd */
static void test_no_page_is_due(bool read_only)
{
	char *p = map(FIRST * page, read_only ? PROT_READ : PROT_READ | PROT_WRITE);
	struct uffdio_register range = {
		.range = { (uintptr_t)p, FIRST * page },
		.mode = UFFDIO_REGISTER_MODE_WP,
	};
	const char *name = read_only ? "read-only memory" : "memory with a userfaultfd";
	struct uffdio_api api = { .api = UFFD_API };
	int fd = -1;

	if (!read_only) {
		fd = syscall(__NR_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
		if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &range)) {
			ksft_test_result_skip("%s gets no page: no userfaultfd\n", name);
			close(fd);
			munmap(p, FIRST * page);
			return;
		}
	}
	update_fresh(PAGES);
	for (int i = 0; i < FIRST; i++)
		read_first(p + i * page);
	close(fd);
	mprotect(p, FIRST * page, PROT_READ | PROT_WRITE);
	ksft_test_result(!own_pages(p, FIRST), "%s gets no page\n", name);
	munmap(p, FIRST * page);
}

static long huge_page_size(void)
{
	FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "r");
	long size = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%ld", &size) != 1)
		size = 0;
	fclose(file);
	return size;
}

/* The first has a huge zero page, or small ones where that is split. */
static void test_a_huge_page_takes_one_fault(void)
{
	const size_t huge = huge_page_size();
	char *area, *p;
	long taken;

	area = map(3 * huge + page, PROT_READ | PROT_WRITE);
	p = (char *)(((uintptr_t)area + huge - 1) & ~(huge - 1));
	if (!huge || madvise(p, 2 * huge, MADV_HUGEPAGE)) {
		ksft_test_result_skip("a huge page takes one fault: no huge pages\n");
		return;
	}
	update_fresh(PAGES + 1);
	taken = update(p, 1) + update(p + huge / 2, 1);
	ksft_print_msg("%ld faults\n", taken);
	ksft_test_result(taken == 1, "a huge page takes one fault\n");
	munmap(area, 3 * huge + page);
}

/*
 * One that knows the source: it writes the probes, and nothing that it was given.
 * @other reads some of them by another instruction.
 */
struct adversary {
	pthread_t thread;
	bool other;
	bool migrates;
	long doubles;
	long vain;
};

static void *waste(void *argument)
{
	const size_t size = LESSONS * (CREDIT + 1) * page;
	char *p = map(size, PROT_READ | PROT_WRITE), *at = p;
	struct adversary *adversary = argument;
	long grant = 0, before;
	cpu_set_t cpus;

	for (int lesson = 0; lesson < LESSONS; lesson++) {
		if (adversary->migrates) {
			CPU_ZERO(&cpus);
			CPU_SET(lesson % sysconf(_SC_NPROCESSORS_ONLN), &cpus);
			sched_setaffinity(0, sizeof(cpus), &cpus);
		}
		read_first(at);
		before = faults();
		*at = 1;
		adversary->doubles += faults() - before;
		at += page;
		grant = next_grant(grant);
		for (long i = 0; i < grant; i++, at += page) {
			if (adversary->other && i % 2)
				read_second(at);
			else
				read_first(at);
		}
	}
	/* Without those that it wrote itself */
	adversary->vain = own_pages(p, (at - p) / page) - LESSONS;
	munmap(p, size);
	return NULL;
}

static void test_what_is_had_in_vain(void)
{
	struct adversary adversaries[THREADS] = {};
	long most = 0, vain = 0, doubles = 0;
	bool good = true;

	for (int i = 0; i < THREADS; i++) {
		struct adversary *a = &adversaries[i];

		a->other = i & 1;
		a->migrates = i & 2;
		pthread_create(&a->thread, NULL, waste, a);
	}
	for (int i = 0; i < THREADS; i++) {
		const struct adversary *a = &adversaries[i];

		pthread_join(a->thread, NULL);
		good &= a->vain <= CREDIT * a->doubles;
		most = a->vain > most ? a->vain : most;
		vain += a->vain;
		doubles += a->doubles;
	}
	ksft_print_msg("%ld pages in vain for %ld double faults\n", vain, doubles);
	ksft_print_msg("at most %ld for the %d of a thread\n", most, LESSONS);
	/* Less would be no adversary. */
	ksft_test_result(good && most > CREDIT * LESSONS / 2,
			 "a double fault pays for at most %d pages in vain\n", CREDIT);
}

int main(int argc, char **argv)
{
	page = sysconf(_SC_PAGESIZE);
	if (argc > 1)
		return program(argv[1]);

	ksft_print_header();
	if (!remember_mode() || !set_mode("learn"))
		ksft_exit_skip("%s does not take \"learn\"\n", SYSCTL);
	atexit(restore_mode);
	ksft_set_plan(10);

	test_an_update_is_learned();
	test_off_learns_nothing();
	test_a_thread_begins_anew();
	test_a_child_begins_anew();
	test_a_program_begins_anew();
	test_reads_get_no_page();
	test_no_page_is_due(true);
	test_no_page_is_due(false);
	test_a_huge_page_takes_one_fault();
	test_what_is_had_in_vain();

	ksft_finished();
}
