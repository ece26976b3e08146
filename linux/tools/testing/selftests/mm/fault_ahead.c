// SPDX-License-Identifier: GPL-2.0
/*
 * Sizes of folios that are "inorder": how many faults first writes in order take, which
 * memory gets single pages, which streams begin anew, what short runs leave untouched,
 * and that memory cgroups hold.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
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
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../kselftest.h"

#define THP		"/sys/kernel/mm/transparent_hugepage"
#define POLICY		THP "/enabled"
#define CONTROL		"/sys/fs/cgroup/cgroup.subtree_control"
#define GROUP		"/sys/fs/cgroup/fault_ahead"
#define PAGES		1024
#define LIMIT		4096	/* pages; the kernel charges a CPU's stock of 64 at a time */
#define SLOWEST		6000	/* tenths of a second until it is met */
#define LARGEST		16	/* pages of the largest folio */
#define SIZES		3
#define FIRST_FAULTS	8	/* a stream begins with 1, 1, 1, 1, 4, 8 pages */

static size_t page;
static char policy[64];
static struct size {
	char path[96];
	char words[64];
} sizes[SIZES];

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

/* Sets what is in brackets in @words again */
static void restore_word(const char *path, char *words)
{
	char *chosen = strchr(words, '[');

	if (!chosen)
		return;
	*strchr(chosen, ']') = '\0';
	write_text(path, chosen + 1);
}

static void restore(void)
{
	for (int i = 0; i < SIZES; i++)
		restore_word(sizes[i].path, sizes[i].words);
	restore_word(POLICY, policy);
}

/* The sizes of 4, 8 and 16 pages */
static bool set_sizes(const char *word)
{
	bool good = true;

	for (int i = 0; i < SIZES; i++)
		good &= write_text(sizes[i].path, word);
	return good;
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

static bool ahead(long taken, long pages)
{
	return taken <= pages / LARGEST + FIRST_FAULTS;
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

	set_sizes("never");
	taken = write_fresh();
	set_sizes("inorder");
	ksft_test_result(taken == PAGES, "never: each page takes a fault\n");
}

static void test_every_other_page(void)
{
	char *p = map(2 * PAGES);
	long taken = write_pages(p, PAGES, 2);

	ksft_test_result(taken == PAGES && residents(p, 2 * PAGES) == PAGES,
			 "every other page: nothing ahead\n");
	unmap(p, 2 * PAGES);
}

/* Runs that begin at each offset in a folio, half of them downwards */
static void test_short_runs(int run)
{
	char *p = map(2 * PAGES);
	long touched = 0;

	for (long first = 0; first + run < 2 * PAGES; first += LARGEST + 1, touched += run) {
		if (touched & 1)
			write_pages(p + (first + run - 1) * page, run, -1);
		else
			write_pages(p + first * page, run, 1);
	}
	ksft_test_result(residents(p, 2 * PAGES) == touched, "runs of %d: nothing ahead\n", run);
	unmap(p, 2 * PAGES);
}

static void test_lock_on_fault(void)
{
	char *p = map(PAGES);
	long touched = 0;

	if (syscall(__NR_mlock2, p, PAGES * page, MLOCK_ONFAULT)) {
		ksft_test_result_skip("MLOCK_ONFAULT: not allowed\n");
		unmap(p, PAGES);
		return;
	}
	for (long first = 0; first + 3 < PAGES; first += LARGEST + 1, touched += 3)
		write_pages(p + first * page, 3, 1);
	ksft_test_result(residents(p, PAGES) == touched,
			 "MLOCK_ONFAULT: nothing ahead of runs of 3\n");
	unmap(p, PAGES);
}

static void test_beside_faults_in_no_order(void)
{
	char *p = map(PAGES), *others = map(4 * PAGES);
	long taken = 0;

	write_pages(p, 2, 1);
	for (int i = 2; i < PAGES; i++) {
		taken += write_pages(p + i * page, 1, 1);
		write_byte(others + (i * 2654435761UL % (2 * PAGES)) * 2 * page);
	}
	ksft_print_msg("%ld faults for %d pages\n", taken, PAGES);
	ksft_test_result(ahead(taken, PAGES), "a stream beside faults in no order\n");
	unmap(p, PAGES);
	unmap(others, 4 * PAGES);
}

static void test_same_page(void)
{
	char *p = map(32);

	for (int i = 0; i < 100; i++) {
		madvise(p + 3 * page, page, MADV_DONTNEED);
		write_byte(p + 3 * page);
	}
	ksft_test_result(residents(p, 32) == 1, "the same page again and again: nothing ahead\n");
	unmap(p, 32);
}

/* Each page is read first: a fault for it, and one for the folio that follows; data survive. */
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
	ksft_test_result(good && taken <= 2 * (PAGES / LARGEST + FIRST_FAULTS),
			 "reads, then writes\n");
	unmap(p, PAGES);
}

/* All pages have been read before the first is written: their zero pages stay */
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
	ksft_test_result(good && taken == PAGES, "writes to zero pages in a row\n");
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

/* As a new stream: single pages at first */
static void *write_eight(void *argument)
{
	return (void *)write_pages(argument, 8, 1);
}

/* A stream of 64 pages; the page where it goes on is returned */
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

/* What a child in GROUP does that writes 2 * LIMIT pages in order, until @seconds after an event */
struct limited {
	long peak;	/* pages */
	long events;	/* of @event in memory.events */
	bool killed;	/* by the OOM killer */
};

static long count_events(const char *event)
{
	char name[32], text[4096], *line;

	snprintf(name, sizeof(name), "%s ", event);
	if (!read_text(GROUP "/memory.events", text, sizeof(text)))
		return 0;
	line = strstr(text, name);
	return line ? atol(line + strlen(name)) : 0;
}

static bool write_in_group(const char *file, const char *event, int seconds,
			   struct limited *limited)
{
	const struct timespec tick = { .tv_nsec = 100 * 1000 * 1000 };
	char path[128], text[4096] = "";
	int status = 0, ticks = 0, waited = 0;
	bool enabled;
	pid_t pid;

	mkdir("/sys/fs/cgroup", 0755);
	read_text(CONTROL, text, sizeof(text));
	enabled = !strstr(text, "memory") && write_text(CONTROL, "+memory");
	mkdir(GROUP, 0755);
	snprintf(path, sizeof(path), GROUP "/%s", file);
	snprintf(text, sizeof(text), "%zu", LIMIT * page);
	if (!write_text(path, text)) {
		rmdir(GROUP);
		return false;
	}
	write_text(GROUP "/memory.swap.max", "0");
	pid = fork();
	if (!pid) {
		char *p;

		if (!write_text(GROUP "/cgroup.procs", "0"))
			_exit(1);
		p = map(2 * LIMIT);
		for (long i = 0; i < 2 * LIMIT; i++)
			write_byte(p + i * page);
		_exit(0);
	}
	while (!waitpid(pid, &status, WNOHANG) && ticks < 10 * seconds) {
		nanosleep(&tick, NULL);
		if (count_events(event) || waited++ >= SLOWEST)
			ticks++;
	}
	limited->killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	limited->peak = read_text(GROUP "/memory.peak", text, sizeof(text)) ? atol(text) / page : 0;
	limited->events = count_events(event);
	while (rmdir(GROUP) && ticks++ < 1000)
		nanosleep(&tick, NULL);
	if (enabled)
		write_text(CONTROL, "-memory");
	return true;
}

/* A writer in order is held where it is held without large folios. */
static void test_limit(const char *file, const char *event, bool kills)
{
	struct limited single, ahead;
	bool there;

	set_sizes("never");
	there = write_in_group(file, event, 5, &single);
	set_sizes("inorder");
	if (!there || !write_in_group(file, event, 5, &ahead)) {
		ksft_test_result_skip("%s: no memory cgroup\n", file);
		return;
	}
	ksft_print_msg("%s of %d pages: single pages %ld with %ld events, in order %ld with %ld\n",
		       file, LIMIT, single.peak, single.events, ahead.peak, ahead.events);
	ksft_test_result(ahead.events && single.events && ahead.killed == kills &&
			 single.killed == kills && ahead.peak <= single.peak + LIMIT / 16,
			 "%s holds\n", file);
}

static void test_words(void)
{
	char path[96], text[64];
	bool good = true;

	for (int i = 0; i < SIZES; i++) {
		good &= write_text(sizes[i].path, "never");
		good &= read_text(sizes[i].path, text, sizeof(text)) && strstr(text, "[never]");
		good &= write_text(sizes[i].path, "inorder");
		good &= read_text(sizes[i].path, text, sizeof(text)) && strstr(text, "[inorder]");
	}
	if (read_text(THP "/hpage_pmd_size", text, sizeof(text))) {
		snprintf(path, sizeof(path), THP "/hugepages-%ldkB/enabled", atol(text) / 1024);
		good &= !write_text(path, "inorder");
	}
	ksft_test_result(good, "sizes below that of a PMD take the word\n");
}

int main(void)
{
	page = sysconf(_SC_PAGESIZE);
	ksft_print_header();
	for (int i = 0; i < SIZES; i++) {
		snprintf(sizes[i].path, sizeof(sizes[i].path), THP "/hugepages-%zukB/enabled",
			 (page << (2 + i)) / 1024);
		if (!read_text(sizes[i].path, sizes[i].words, sizeof(sizes[i].words)) ||
		    !strstr(sizes[i].words, "inorder"))
			ksft_exit_skip("%s has no \"inorder\"\n", sizes[i].path);
	}
	if (geteuid())
		ksft_exit_skip("only root may write %s\n", POLICY);
	read_text(POLICY, policy, sizeof(policy));
	atexit(restore);
	write_text(POLICY, "never");
	set_sizes("inorder");
	ksft_set_plan(22);

	test_words();
	test_upwards();
	test_downwards();
	test_off();
	test_every_other_page();
	for (int run = 1; run <= 3; run++)
		test_short_runs(run);
	test_lock_on_fault();
	test_beside_faults_in_no_order();
	test_same_page();
	test_zero_pages();
	test_zero_pages_before();
	test_in_the_kernel();
	test_what_is_there();
	test_nohugepage();
	test_prctl();
	test_userfaultfd();
	test_a_thread_begins_anew();
	test_a_child_begins_anew();
	test_limit("memory.high", "high", false);
	test_limit("memory.max", "max", true);

	ksft_finished();
}
