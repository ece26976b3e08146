// SPDX-License-Identifier: GPL-2.0
/*
 * Counters of pages against the pages themselves: after a mixed load on all CPUs, memory.stat,
 * memory.numa_stat, /proc/vmstat and /proc/zoneinfo must equal what /proc/kpageflags,
 * /proc/kpagecount and /proc/kpagecgroup say of each page.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/kernel-page-flags.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../kselftest.h"

#ifndef MADV_COLD
#define MADV_COLD	20
#endif
#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT	21
#endif

#define WORKERS	4
#define STEPS	600		/* of a worker */
#define REGIONS	16		/* that a worker has at a time */
#define SHARED	256		/* pages of a worker in the common memfd */
#define CHUNK	4096		/* pages that are looked up at a time */
#define TRIES	20
#define THP	(2UL << 20)
#define LRU_GEN	"/sys/kernel/mm/lru_gen/enabled"

/* What is counted, in pages */
enum { ANON, MAPPED, LRU_ANON, LRU_FILE, UNEVICTABLE, ITEMS };

static const char * const item_names[ITEMS] = {
	"mapped anonymous", "mapped files", "anonymous LRU", "file LRU", "unevictable",
};

/* The counters whose sum is an item */
static const char * const in_memory_stat[ITEMS][2] = {
	{ "anon" }, { "file_mapped" }, { "inactive_anon", "active_anon" },
	{ "inactive_file", "active_file" }, { "unevictable" },
};

static const char * const in_vmstat[ITEMS][2] = {
	{ "nr_anon_pages" }, { "nr_mapped" }, { "nr_inactive_anon", "nr_active_anon" },
	{ "nr_inactive_file", "nr_active_file" }, { "nr_unevictable" },
};

static const char * const in_zones[ITEMS][2] = {
	[LRU_ANON] = { "nr_zone_inactive_anon", "nr_zone_active_anon" },
	[LRU_FILE] = { "nr_zone_inactive_file", "nr_zone_active_file" },
	[UNEVICTABLE] = { "nr_zone_unevictable" },
};

struct sums {
	long of[ITEMS];
};

/* What workers tell, in memory that all have */
struct report {
	int done;
	long before[WORKERS], joined[WORKERS], end[WORKERS];	/* faults */
};

static long page;
static struct report *report;
static int memfd;
static char root[64] = "/sys/fs/cgroup", top[96], leaf[2][112];
static bool mounted, enabled;

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	int error = 0;

	if (fd < 0)
		return errno;
	if (write(fd, text, strlen(text)) < 0)
		error = errno;
	close(fd);
	return error;
}

static int write_in(const char *folder, const char *name, const char *text)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return write_file(path, text);
}

static bool read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY);
	size_t length = 0;
	ssize_t n;

	if (fd < 0)
		return false;
	while ((n = read(fd, text + length, size - 1 - length)) > 0)
		length += n;
	text[length] = '\0';
	close(fd);
	return true;
}

/*
 * The sum of all numbers behind @name, at the start of a line or indented, in @text. A number
 * may have a node in front: N0=4096.
 */
static long number(const char *text, const char *name)
{
	long sum = 0;

	while (*text) {
		const char *end = strchrnul(text, '\n');

		while (*text == ' ')
			text++;
		if (!strncmp(text, name, strlen(name)) && text[strlen(name)] == ' ') {
			const char *s = text + strlen(name);
			char *after;

			for (; s < end; s = after) {
				s += strspn(s, " ");
				if (*s == 'N')
					s = strchr(s, '=') + 1;
				sum += strtol(s, &after, 10);
				if (after == s)
					break;
			}
		}
		text = *end ? end + 1 : end;
	}
	return sum;
}

static struct sums from_text(const char *text, const char * const names[ITEMS][2], long unit)
{
	struct sums sums = {};

	for (int item = 0; item < ITEMS; item++)
		for (int i = 0; i < 2 && names[item][i]; i++)
			sums.of[item] += number(text, names[item][i]) / unit;
	return sums;
}

static ino_t inode(const char *path)
{
	struct stat status;

	return stat(path, &status) ? 0 : status.st_ino;
}

static bool has(uint64_t flags, int flag)
{
	return flags & (1ULL << flag);
}

/* Look at each page: of the whole machine, and of the memory cgroups of this test. */
static void walk(struct sums *all, struct sums *ours)
{
	static uint64_t flags[CHUNK], count[CHUNK], cgroup[CHUNK];
	const ino_t own[] = { inode(top), inode(leaf[0]), inode(leaf[1]) };
	int fds[] = {
		open("/proc/kpageflags", O_RDONLY), open("/proc/kpagecount", O_RDONLY),
		open("/proc/kpagecgroup", O_RDONLY),
	};
	ssize_t n;

	memset(all, 0, sizeof(*all));
	memset(ours, 0, sizeof(*ours));
	while ((n = read(fds[0], flags, sizeof(flags))) > 0) {
		if (read(fds[1], count, n) != n || read(fds[2], cgroup, n) != n)
			ksft_exit_fail_msg("/proc/kpage*: short read\n");
		for (int i = 0; i < n / 8; i++) {
			const uint64_t f = flags[i];
			bool mine = false;
			int item;

			if (has(f, KPF_NOPAGE) || has(f, KPF_HUGE))
				continue;
			for (int k = 0; k < 3; k++)
				mine |= cgroup[i] && cgroup[i] == own[k];
			if (count[i] && !has(f, KPF_ZERO_PAGE)) {
				item = has(f, KPF_ANON) ? ANON : MAPPED;
				all->of[item]++;
				ours->of[item] += mine;
			}
			if (has(f, KPF_LRU)) {
				item = has(f, KPF_UNEVICTABLE) ? UNEVICTABLE :
				       has(f, KPF_SWAPBACKED) ? LRU_ANON : LRU_FILE;
				all->of[item]++;
				ours->of[item] += mine;
			}
		}
	}
	for (int i = 0; i < 3; i++)
		close(fds[i]);
}

static bool equal(const struct sums *a, const struct sums *b, int from)
{
	return !memcmp(a->of + from, b->of + from, sizeof(long) * (ITEMS - from));
}

static void compare(const char *name, bool same, const struct sums *counted,
		    const struct sums *walked, int from)
{
	for (int i = from; i < ITEMS; i++)
		if (!same || walked->of[i])
			ksft_print_msg("%s: %ld pages, counted %ld\n", item_names[i],
				       walked->of[i], counted->of[i]);
	ksft_test_result(same, "%s\n", name);
}

/* Both at a moment at which nothing changes; others may run, so try again. */
static void check_system(const char *when)
{
	static char text[1 << 18], zones[1 << 18];
	struct sums all, ours, nodes = {}, zone = {};
	bool same = false;
	char name[96];

	for (int i = 0; i < TRIES && !same; i++) {
		/* Adds what CPUs have counted to the sums. */
		write_file("/proc/sys/vm/stat_refresh", "1");
		read_text("/proc/vmstat", text, sizeof(text));
		read_text("/proc/zoneinfo", zones, sizeof(zones));
		nodes = from_text(text, in_vmstat, 1);
		zone = from_text(zones, in_zones, 1);
		walk(&all, &ours);
		same = equal(&nodes, &all, 0) && equal(&zone, &all, LRU_ANON);
		if (!same)
			usleep(100000);
	}
	snprintf(name, sizeof(name), "vmstat, %s", when);
	compare(name, equal(&nodes, &all, 0), &nodes, &all, 0);
	snprintf(name, sizeof(name), "zoneinfo, %s", when);
	compare(name, equal(&zone, &all, LRU_ANON), &zone, &all, LRU_ANON);
}

/*
 * The kernel adds up the counters of memory cgroups every two seconds, by a deferrable timer: wake
 * each CPU, since it may be the one that has the timer.
 */
static void wait_for_sums(void)
{
	const long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	for (long cpu = 0; cpu < cpus; cpu++) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET(cpu, &set);
		sched_setaffinity(0, sizeof(set), &set);
		usleep(500000 / cpus);
	}
}

static void check_cgroups(const char *when)
{
	static char text[1 << 16], nodes[1 << 16];
	struct sums all, ours, counted = {}, by_node = {};
	bool same = false, numa = false;
	char path[128], name[96];

	for (int i = 0; i < TRIES && !same; i++) {
		wait_for_sums();
		snprintf(path, sizeof(path), "%s/memory.stat", top);
		read_text(path, text, sizeof(text));
		snprintf(path, sizeof(path), "%s/memory.numa_stat", top);
		numa = read_text(path, nodes, sizeof(nodes));
		counted = from_text(text, in_memory_stat, page);
		by_node = from_text(nodes, in_memory_stat, page);
		walk(&all, &ours);
		same = equal(&counted, &ours, 0) && (!numa || equal(&by_node, &ours, 0));
	}
	snprintf(name, sizeof(name), "memory.stat, %s", when);
	compare(name, equal(&counted, &ours, 0), &counted, &ours, 0);
	snprintf(name, sizeof(name), "memory.numa_stat, %s", when);
	if (numa)
		compare(name, equal(&by_node, &ours, 0), &by_node, &ours, 0);
	else
		ksft_test_result_skip("%s: no NUMA\n", name);
}

static long faults(void)
{
	struct rusage self, children;

	getrusage(RUSAGE_SELF, &self);
	getrusage(RUSAGE_CHILDREN, &children);
	return self.ru_minflt + self.ru_majflt + children.ru_minflt + children.ru_majflt;
}

static unsigned int next(unsigned int *seed)
{
	*seed = *seed * 1103515245 + 12345;
	return *seed >> 12;
}

struct region {
	char *p;
	long pages;
};

static void touch(struct region *r, unsigned int *seed)
{
	const long first = next(seed) % r->pages, step = 1 + next(seed) % 3;
	const bool store = next(seed) % 4;

	for (long i = first; i < r->pages; i += step) {
		char *p = r->p + i * page;

		if (store)
			__atomic_store_n(p, i, __ATOMIC_RELAXED);
		else
			__atomic_load_n(p, __ATOMIC_RELAXED);
	}
}

static struct region new_region(int id, unsigned int *seed)
{
	struct region r = { .pages = 1 + next(seed) % 96 };
	const int kind = next(seed) % 8;

	if (kind == 0) {		/* pages that stay when the worker ends */
		r.pages = SHARED;
		r.p = mmap(NULL, SHARED * page, PROT_READ | PROT_WRITE, MAP_SHARED, memfd,
			   (off_t)id * SHARED * page);
	} else if (kind == 1) {		/* room for a huge page */
		r.pages = 2 * THP / page;
		r.p = mmap(NULL, 2 * THP, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (r.p != MAP_FAILED)
			madvise(r.p, 2 * THP, MADV_HUGEPAGE);
	} else {
		r.p = mmap(NULL, r.pages * page, PROT_READ | PROT_WRITE,
			   (kind == 2 ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS, -1, 0);
	}
	if (r.p == MAP_FAILED)
		r.p = NULL;
	return r;
}

static void fork_and_store(struct region *r, unsigned int *seed)
{
	const pid_t child = fork();

	if (!child) {
		touch(r, seed);
		_exit(0);
	}
	if (child > 0)
		waitpid(child, NULL, 0);
}

static void step(int id, struct region *regions, unsigned int *seed)
{
	struct region *r = &regions[next(seed) % REGIONS];
	long half;
	char *p;

	if (!r->p) {
		*r = new_region(id, seed);
		if (r->p)
			touch(r, seed);
		return;
	}
	half = (r->pages + 1) / 2 * page;
	switch (next(seed) % 12) {
	case 0:
		munmap(r->p, r->pages * page);
		r->p = NULL;
		break;
	case 1:
		if (r->pages > 1) {
			munmap(r->p + half, r->pages * page - half);
			r->pages = half / page;
		}
		break;
	case 2:
		madvise(r->p, half, MADV_DONTNEED);
		break;
	case 3:
		fork_and_store(r, seed);
		break;
	case 4:
		mlock(r->p, half);
		break;
	case 5:
		munlock(r->p, r->pages * page);
		break;
	case 6:
		madvise(r->p, half, MADV_COLD);
		break;
	case 7:
		madvise(r->p, half, MADV_PAGEOUT);
		break;
	case 8:
		p = mremap(r->p, r->pages * page, r->pages * page + half, MREMAP_MAYMOVE);
		if (p != MAP_FAILED) {
			munmap(p + r->pages * page, half);
			r->p = p;
		}
		break;
	case 9:
		/* What it has stays with the memory cgroup that it leaves. */
		write_in(leaf[next(seed) % 2], "cgroup.procs", "0");
		break;
	default:
		touch(r, seed);
	}
}

static void work(int id)
{
	static struct region regions[REGIONS];
	unsigned int seed = 1 + id;
	cpu_set_t cpus;

	/* If the test ends by a failure */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	CPU_ZERO(&cpus);
	CPU_SET(id % sysconf(_SC_NPROCESSORS_ONLN), &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);

	report->before[id] = faults();
	if (write_in(leaf[id % 2], "cgroup.procs", "0"))
		_exit(1);
	report->joined[id] = faults();
	for (int i = 0; i < STEPS; i++)
		step(id, regions, &seed);
	report->end[id] = faults();
	__atomic_add_fetch(&report->done, 1, __ATOMIC_SEQ_CST);
	for (;;)
		pause();
}

/* Reclaim, migration and another LRU, while the workers run */
static void disturb(void)
{
	char was[32] = "";
	bool lru_gen = read_text(LRU_GEN, was, sizeof(was));

	for (int i = 0; __atomic_load_n(&report->done, __ATOMIC_SEQ_CST) < WORKERS; i++) {
		write_in(top, "memory.reclaim", "1M");
		if (i % 4 == 1)
			write_file("/proc/sys/vm/compact_memory", "1");
		if (lru_gen && i % 4 == 3)
			write_file(LRU_GEN, i % 8 == 3 ? "n" : "y");
		if (waitpid(-1, NULL, WNOHANG) > 0)
			ksft_exit_fail_msg("a worker has ended\n");
		usleep(10000);
	}
	if (lru_gen)
		write_file(LRU_GEN, was);
}

static void check_faults(void)
{
	static char text[1 << 16];
	long least = 0, most = 0, counted = 0;
	char path[128];

	for (int i = 0; i < WORKERS; i++) {
		least += report->end[i] - report->joined[i];
		most += report->end[i] - report->before[i];
	}
	snprintf(path, sizeof(path), "%s/memory.stat", top);
	for (int i = 0; i < TRIES && counted < least; i++) {
		wait_for_sums();
		read_text(path, text, sizeof(text));
		counted = number(text, "pgfault");
	}
	ksft_print_msg("%ld to %ld faults, counted %ld\n", least, most, counted);
	ksft_test_result(counted >= least && counted <= most, "memory.stat, pgfault\n");
}

static void set_up(void)
{
	static char text[4096];
	char path[128];

	page = sysconf(_SC_PAGESIZE);
	if (geteuid())
		ksft_exit_skip("needs root\n");
	if (access("/proc/kpagecgroup", R_OK))
		ksft_exit_skip("no /proc/kpagecgroup\n");
	snprintf(path, sizeof(path), "%s/cgroup.controllers", root);
	if (!read_text(path, text, sizeof(text))) {
		snprintf(root, sizeof(root), "/tmp/page_counters.XXXXXX");
		if (!mkdtemp(root) || mount("none", root, "cgroup2", 0, NULL))
			ksft_exit_skip("no cgroup2\n");
		mounted = true;
		snprintf(path, sizeof(path), "%s/cgroup.controllers", root);
		read_text(path, text, sizeof(text));
	}
	if (!strstr(text, "memory"))
		ksft_exit_skip("no memory cgroups\n");
	snprintf(path, sizeof(path), "%s/cgroup.subtree_control", root);
	read_text(path, text, sizeof(text));
	enabled = !strstr(text, "memory");
	write_in(root, "cgroup.subtree_control", "+memory");

	snprintf(top, sizeof(top), "%s/page_counters", root);
	if (mkdir(top, 0755))
		ksft_exit_fail_perror(top);
	write_in(top, "cgroup.subtree_control", "+memory");
	for (int i = 0; i < 2; i++) {
		snprintf(leaf[i], sizeof(leaf[i]), "%s/%d", top, i);
		if (mkdir(leaf[i], 0755))
			ksft_exit_fail_perror(leaf[i]);
	}

	memfd = memfd_create("page_counters", 0);
	if (memfd < 0 || ftruncate(memfd, (off_t)WORKERS * SHARED * page))
		ksft_exit_fail_perror("memfd");
	report = mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	if (report == MAP_FAILED)
		ksft_exit_fail_perror("mmap");
	memset(report, 0, sizeof(*report));
}

static void clean_up(void)
{
	rmdir(top);
	if (enabled)
		write_in(root, "cgroup.subtree_control", "-memory");
	if (mounted) {
		umount(root);
		rmdir(root);
	}
}

int main(void)
{
	pid_t workers[WORKERS];

	ksft_print_header();
	set_up();
	ksft_set_plan(13);

	for (int i = 0; i < WORKERS; i++) {
		workers[i] = fork();
		if (!workers[i])
			work(i);
	}
	disturb();
	check_faults();
	check_system("after a mixed load");
	check_cgroups("after a mixed load");

	for (int i = 0; i < WORKERS; i++) {
		kill(workers[i], SIGKILL);
		waitpid(workers[i], NULL, 0);
	}
	check_system("after the end of its tasks");
	check_cgroups("after the end of its tasks");

	/* The pages of the memfd outlive the memory cgroups that they are charged to. */
	rmdir(leaf[0]);
	rmdir(leaf[1]);
	check_cgroups("of dead memory cgroups");
	close(memfd);
	check_cgroups("of freed memory");

	clean_up();
	ksft_finished();
}
