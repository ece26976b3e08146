// SPDX-License-Identifier: GPL-2.0
/*
 * Fault-ahead: how many faults writes in order take, which memory gets no page
 * ahead, who begins anew, and how many pages can be had in vain.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../kselftest.h"

#define KNOB	"/sys/kernel/mm/fault_ahead_kb"
#define POLICY	"/sys/kernel/mm/transparent_hugepage/enabled"
#define GROUP	"/sys/fs/cgroup/fault_ahead"
#define PAGES	1024
#define LIMIT	4096
#define EARNED	4	/* mm/fault_ahead.c: pages, by a page written in order */
#define THREADS	4

static size_t page;
static char knob[32], policy[64];

static bool write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	bool written;

	if (fd < 0)
		return false;
	written = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	close(fd);
	return written;
}

static bool read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY);
	ssize_t got;

	if (fd < 0)
		return false;
	got = read(fd, text, size - 1);
	close(fd);
	text[got > 0 ? got : 0] = '\0';
	return got > 0;
}

static void restore(void)
{
	char *chosen = strchr(policy, '[');

	write_text(KNOB, knob);
	if (chosen) {
		*strchr(chosen, ']') = '\0';
		write_text(POLICY, chosen + 1);
	}
}

/* The largest size: 16 pages */
static void switch_on(void)
{
	char text[32];

	snprintf(text, sizeof(text), "%zu", 16 * page / 1024);
	if (!write_text(KNOB, text))
		ksft_exit_fail_msg("%s does not take %s\n", KNOB, text);
}

static void write_byte(char *p)
{
	__atomic_store_n(p, 1, __ATOMIC_RELAXED);
}

static char read_byte(char *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

static long faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_minflt;
}

/* Ends of a stream are where no other test has them, on a large boundary. */
static char *map(size_t pages)
{
	const size_t align = 64 * page;
	char *p = mmap(NULL, pages * page + 2 * align, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		ksft_exit_fail_perror("mmap");
	return (char *)(((uintptr_t)p + 2 * align - 1) & ~(align - 1));
}

static void unmap(char *p, size_t pages)
{
	munmap(p, pages * page);
}

static bool resident(char *p)
{
	unsigned char is;

	return !mincore(p, page, &is) && (is & 1);
}

static long residents(char *p, size_t pages)
{
	long sum = 0;

	for (size_t i = 0; i < pages; i++)
		sum += resident(p + i * page);
	return sum;
}

/* Faults of @pages writes, @step pages apart */
static long write_pages(char *p, int pages, int step)
{
	long before;

	faults();	/* takes those of the stack */
	before = faults();
	for (int i = 0; i < pages; i++)
		write_byte(p + (long)i * step * (long)page);
	return faults() - before;
}

static long write_fresh(void)
{
	char *p = map(PAGES);
	long taken = write_pages(p, PAGES, 1);

	unmap(p, PAGES);
	return taken;
}

/* One for five pages, but for the first few */
static bool ahead(long taken, long pages)
{
	return taken <= pages / (1 + EARNED) + 8;
}

static void test_upwards(void)
{
	long taken = write_fresh();

	ksft_print_msg("%ld faults for %d pages\n", taken, PAGES);
	ksft_test_result(ahead(taken, PAGES), "writes upwards\n");
}

static void test_downwards(void)
{
	char *p = map(PAGES);
	long taken = write_pages(p + (PAGES - 1) * page, PAGES, -1);

	ksft_print_msg("%ld faults for %d pages\n", taken, PAGES);
	ksft_test_result(ahead(taken, PAGES), "writes downwards\n");
	unmap(p, PAGES);
}

static void test_off(void)
{
	long taken;

	write_text(KNOB, "0");
	taken = write_fresh();
	switch_on();
	ksft_test_result(taken == PAGES, "off, each page takes a fault\n");
}

static void test_every_other_page(void)
{
	char *p = map(2 * PAGES);
	long taken = write_pages(p, PAGES, 2);

	ksft_test_result(taken == PAGES && residents(p, 2 * PAGES) == PAGES,
			 "every other page: nothing ahead\n");
	unmap(p, 2 * PAGES);
}

/* Each page is read first. Two faults where there is no folio, and data survive. */
static void test_zero_pages(void)
{
	char *p = map(PAGES);
	bool good = true;
	long before = faults(), taken;

	for (int i = 0; i < PAGES; i++) {
		good &= !read_byte(p + i * page);
		__atomic_store_n((int *)(p + i * page), i + 1, __ATOMIC_RELAXED);
	}
	taken = faults() - before;
	for (int i = 0; i < PAGES; i++)
		good &= *(int *)(p + i * page) == i + 1 && !p[i * page + page - 1];
	ksft_print_msg("%ld faults for %d pages\n", taken, PAGES);
	ksft_test_result(good && taken <= 2 * (PAGES / (1 + EARNED)) + 16, "reads, then writes\n");
	unmap(p, PAGES);
}

/* All pages have been read before the first is written */
static void test_zero_pages_before(void)
{
	char *p = map(PAGES);
	bool good = true;
	long taken;

	for (int i = 0; i < PAGES; i++)
		good &= !read_byte(p + i * page);
	taken = write_pages(p, PAGES, 1);
	for (int i = 0; i < PAGES; i++)
		good &= p[i * page] == 1 && !p[i * page + 1];
	ksft_test_result(good && ahead(taken, PAGES), "writes to zero pages\n");
	unmap(p, PAGES);
}

static void test_in_the_kernel(void)
{
	int fd = open("/dev/zero", O_RDONLY);
	char *p = map(PAGES);
	long before = faults();

	if (read(fd, p, PAGES * page) != (ssize_t)(PAGES * page))
		ksft_exit_fail_perror("/dev/zero");
	ksft_test_result(ahead(faults() - before, PAGES), "read(2) into fresh memory\n");
	close(fd);
	unmap(p, PAGES);
}

/* Pages that are there, or are guarded, or another mapping, stay what they are. */
static void test_what_is_there(void)
{
	char *p = map(32);
	bool good = true;

	p[9 * page] = 7;
	if (mprotect(p + 20 * page, page, PROT_READ))
		ksft_exit_fail_perror("mprotect");
	write_pages(p, 9, 1);
	write_pages(p + 10 * page, 10, 1);
	good &= p[9 * page] == 7;
	good &= !resident(p + 20 * page);
	good &= !resident(p + 21 * page);
	ksft_test_result(good, "pages and mappings that are there\n");
	unmap(p, 32);
}

static void test_no_folio(const char *name, char *p)
{
	long taken;

	taken = write_pages(p, 32, 1);
	ksft_test_result(taken == 32, "%s: each page takes a fault\n", name);
	unmap(p, 32);
}

static void test_nohugepage(void)
{
	char *p = map(32);

	madvise(p, 32 * page, MADV_NOHUGEPAGE);
	test_no_folio("MADV_NOHUGEPAGE", p);
}

static void test_prctl(void)
{
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	test_no_folio("PR_SET_THP_DISABLE", map(32));
	prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
}

static void test_userfaultfd(void)
{
	char *p = map(32);
	struct uffdio_register range = {
		.range = { (uintptr_t)p, 32 * page },
		.mode = UFFDIO_REGISTER_MODE_WP,
	};
	struct uffdio_api api = { .api = UFFD_API };
	int fd = syscall(__NR_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &range)) {
		ksft_test_result_skip("userfaultfd: there is none\n");
		close(fd);
		unmap(p, 32);
		return;
	}
	test_no_folio("userfaultfd", p);
	close(fd);
}

/*
 * The writes that the test has taken so far left an end before @argument, with
 * credit. One that begins anew takes a fault for its first eight pages at least.
 */
static void *write_eight(void *argument)
{
	return (void *)write_pages(argument, 8, 1);
}

/* A stream that ends at a boundary, with credit left: the page before it is returned */
static char *stream(char *p)
{
	write_pages(p, 64, 1);
	while (resident(p))
		p += page;
	return p;
}

static void test_a_thread_begins_anew(void)
{
	char *p = map(PAGES), *end = stream(p);
	pthread_t thread;
	void *taken;

	pthread_create(&thread, NULL, write_eight, end);
	pthread_join(thread, &taken);
	ksft_test_result((long)taken >= 4, "a thread begins anew\n");
	unmap(p, PAGES);
}

static void test_a_child_begins_anew(void)
{
	char *p = map(PAGES), *end = stream(p);
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(write_pages(end, 8, 1));
	waitpid(pid, &status, 0);
	ksft_test_result(WEXITSTATUS(status) >= 4, "a child begins anew\n");
	unmap(p, PAGES);
}

static void test_another_process(void)
{
	static char text[64 * 65536];
	char *p = map(PAGES);
	struct iovec from = { text, 64 * page }, to = { p, 64 * page };
	pid_t pid = fork();
	bool good = false;
	int status;

	if (!pid) {
		pause();
		_exit(0);
	}
	memset(text, 1, sizeof(text));
	if (process_vm_writev(pid, &from, 1, &to, 1, 0) == (ssize_t)(64 * page)) {
		char path[64], line[256];
		long kib = -1;
		FILE *file;

		snprintf(path, sizeof(path), "/proc/%d/smaps", pid);
		file = fopen(path, "r");
		while (file && fgets(line, sizeof(line), file)) {
			unsigned long start, end;

			if (sscanf(line, "%lx-%lx", &start, &end) == 2)
				kib = start <= (uintptr_t)p && (uintptr_t)p < end ? 0 : -1;
			else if (!kib && sscanf(line, "Rss: %ld", &kib) == 1)
				break;
		}
		if (file)
			fclose(file);
		good = kib == (long)(64 * page / 1024);
	}
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	ksft_test_result(good, "another process's memory: nothing ahead\n");
	unmap(p, PAGES);
}

/*
 * In a group whose @file is LIMIT pages: the child's writes must end, without OOM.
 * The kernel charges 64 pages at a time, and lets the writer sleep beyond memory.high,
 * by the square of its share: LIMIT is large, and the writes few.
 */
static void test_limit(const char *file)
{
	char path[128], text[4096];
	int status = 0;
	long most = 0;
	pid_t pid;

	mkdir("/sys/fs/cgroup", 0755);
	write_text("/sys/fs/cgroup/cgroup.subtree_control", "+memory");
	mkdir(GROUP, 0755);
	snprintf(path, sizeof(path), GROUP "/%s", file);
	snprintf(text, sizeof(text), "%zu", LIMIT * page);
	if (!write_text(path, text)) {
		ksft_test_result_skip("%s: no memory cgroup\n", file);
		rmdir(GROUP);
		return;
	}
	pid = fork();
	if (!pid) {
		char *p;

		if (!write_text(GROUP "/cgroup.procs", "0"))
			_exit(1);
		/* The group is filled but for a folio, which streams then ask for. */
		p = map(2 * LIMIT);
		do {
			write_pages(p, 1, 1);
			p += 2 * page;
			read_text(GROUP "/memory.current", text, sizeof(text));
		} while (atol(text) + 16 * (long)page < LIMIT * (long)page);
		p = map(PAGES);
		for (int i = 0; i < 128; i++) {
			write_pages(p, 10, 1);
			madvise(p, 64 * page, MADV_DONTNEED);
		}
		_exit(0);
	}
	waitpid(pid, &status, 0);
	if (read_text(GROUP "/memory.peak", text, sizeof(text)))
		most = atol(text) / page;
	read_text(GROUP "/memory.events", text, sizeof(text));
	ksft_print_msg("%s: %ld pages at most\n", file, most);
	ksft_test_result(!status && strstr(text, "oom_kill 0"), "%s holds, without a kill\n", file);
	rmdir(GROUP);
}

/*
 * One that knows the source: after two writes in order it touches the first page
 * only of what it is given. It gives touched pages back if @recycles.
 */
struct adversary {
	pthread_t thread;
	bool recycles;
	long touched;
	long vain;
};

static void *waste(void *argument)
{
	struct adversary *adversary = argument;
	char *p = map(PAGES);
	size_t i = 0;

	while (i < PAGES) {
		const bool missing = !resident(p + i * page);

		if (missing) {
			write_byte(p + i * page);
			adversary->touched++;
			if (adversary->recycles && i)
				madvise(p + (i - 1) * page, page, MADV_DONTNEED);
		}
		i++;
	}
	adversary->vain = residents(p, PAGES) -
			  (adversary->recycles ? 1 : adversary->touched);
	unmap(p, PAGES);
	return NULL;
}

static void test_what_is_had_in_vain(void)
{
	struct adversary adversaries[THREADS] = {};
	long vain = 0, touched = 0;
	bool good = true;

	for (int i = 0; i < THREADS; i++) {
		adversaries[i].recycles = i & 1;
		pthread_create(&adversaries[i].thread, NULL, waste, &adversaries[i]);
	}
	for (int i = 0; i < THREADS; i++) {
		const struct adversary *a = &adversaries[i];

		pthread_join(a->thread, NULL);
		good &= a->vain <= EARNED * a->touched;
		vain += a->vain;
		touched += a->touched;
	}
	ksft_print_msg("%ld pages in vain for %ld that were touched\n", vain, touched);
	/* Less would be no adversary. */
	ksft_test_result(good && vain > 2 * touched,
			 "at most %d pages in vain for a touched page\n", EARNED);
}

static void test_the_knob(void)
{
	char text[32];
	bool good = true;

	good &= !write_text(KNOB, "1");
	good &= !write_text(KNOB, "24");
	good &= !write_text(KNOB, "1048576");
	good &= !write_text(KNOB, "-64");
	good &= !write_text(KNOB, "x");
	snprintf(text, sizeof(text), "%zu", 4 * page / 1024);
	good &= write_text(KNOB, text);
	switch_on();
	ksft_test_result(good, "the knob takes sizes of folios, nothing else\n");
}

int main(void)
{
	page = sysconf(_SC_PAGESIZE);
	ksft_print_header();
	if (!read_text(KNOB, knob, sizeof(knob)))
		ksft_exit_skip("no %s: CONFIG_FAULT_AHEAD\n", KNOB);
	if (geteuid())
		ksft_exit_skip("only root may write %s\n", KNOB);
	read_text(POLICY, policy, sizeof(policy));
	atexit(restore);
	write_text(POLICY, "never");
	switch_on();
	ksft_set_plan(18);

	test_the_knob();
	test_upwards();
	test_downwards();
	test_off();
	test_every_other_page();
	test_zero_pages();
	test_zero_pages_before();
	test_in_the_kernel();
	test_what_is_there();
	test_nohugepage();
	test_prctl();
	test_userfaultfd();
	test_a_thread_begins_anew();
	test_a_child_begins_anew();
	test_another_process();
	test_limit("memory.max");
	test_limit("memory.high");
	test_what_is_had_in_vain();

	ksft_finished();
}
