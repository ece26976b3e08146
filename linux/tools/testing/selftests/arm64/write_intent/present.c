// SPDX-License-Identifier: GPL-2.0
/*
 * A load-exclusive that no store follows must do to a page that is there what
 * a load does: nothing. On CPUs without hardware access flag such an access
 * faults where the page is old, and on all where it is swapped out.
 */
#define _GNU_SOURCE
#include <sys/wait.h>

#include "write_intent.h"

#define PAGES		64
#define KSM		"/sys/kernel/mm/ksm/"
/* Documentation/admin-guide/mm/pagemap.rst */
#define PM_PRESENT	_BITULL(63)
#define PM_SWAP		_BITULL(62)
#define PM_PFN		(_BITULL(55) - 1)
#define KPF_DIRTY	_BITULL(4)
#define KPF_SWAPCACHE	_BITULL(13)
#define KPF_KSM		_BITULL(21)

static size_t page;

static uint64_t entry_of(const void *p)
{
	uint64_t entry = 0;
	int fd = open("/proc/self/pagemap", O_RDONLY);

	if (fd < 0 || pread(fd, &entry, 8, (uintptr_t)p / page * 8) != 8)
		ksft_exit_fail_perror("/proc/self/pagemap");
	close(fd);
	return entry;
}

static uint64_t flags_of(const void *p)
{
	uint64_t flags = 0;
	int fd = open("/proc/kpageflags", O_RDONLY);

	if (fd < 0 || pread(fd, &flags, 8, (entry_of(p) & PM_PFN) * 8) != 8)
		ksft_exit_fail_perror("/proc/kpageflags");
	close(fd);
	return flags & (KPF_DIRTY | KPF_SWAPCACHE | KPF_KSM);
}

/* All make the pages of @map, filled with 1, old; some do more before that. */
static bool make_old(char *map)
{
	return write_file("/proc/self/clear_refs", "1");
}

static pid_t child;

static bool share_with_child(char *map)
{
	child = fork();
	if (!child) {
		pause();
		_exit(0);
	}
	return make_old(map);
}

static bool is_merged(const char *map)
{
	for (int n = 0; n < PAGES; n++)
		if (!(flags_of(map + n * page) & KPF_KSM))
			return false;
	return true;
}

static bool merge(char *map)
{
	if (madvise(map, PAGES * page, MADV_MERGEABLE) ||
	    !set(KSM "pages_to_scan", "1000") || !set(KSM "sleep_millisecs", "0") ||
	    !set(KSM "run", "1"))
		return false;
	for (int ms = 0; ms < 10000 && !is_merged(map); ms++)
		usleep(1000);
	write_file(KSM "run", "0");
	return is_merged(map) && make_old(map);
}

static bool swap_out(char *map)
{
#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif
	return !madvise(map, PAGES * page, MADV_PAGEOUT) &&
	       entry_of(map) & PM_SWAP && entry_of(map + (PAGES - 1) * page) & PM_SWAP;
}

static const struct {
	const char *name;
	bool (*prepare)(char *map);
	bool keeps_frame;
} states[] = {
	{ "old", make_old, true },
	{ "shared with a child, old", share_with_child, true },
	{ "merged by KSM, old", merge, true },
	{ "swapped out", swap_out, false },
};

/* What touching left of a page. */
struct state {
	uint64_t flags;	/* those that changed; all if it was not there */
	bool kept;	/* in its frame */
};

static bool run(size_t s, const struct instruction *i, struct state *result)
{
	char *map = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t before[PAGES], flags = 0;
	bool prepared;

	if (map == MAP_FAILED)
		ksft_exit_fail_perror("mmap");
	madvise(map, PAGES * page, MADV_NOHUGEPAGE);
	memset(map, 1, PAGES * page);
	child = 0;
	prepared = states[s].prepare(map);
	for (int n = 0; n < PAGES && prepared; n++) {
		before[n] = entry_of(map + n * page);
		if (states[s].keeps_frame)
			flags = flags_of(map + n * page);
		touch(i, map + n * page);
		result[n].flags = flags ^ flags_of(map + n * page);
		result[n].kept = !((before[n] ^ entry_of(map + n * page)) &
				   (PM_PRESENT | PM_PFN));
	}
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	munmap(map, PAGES * page);
	return prepared;
}

static void test(size_t s)
{
	const struct instruction *alone = &instructions[12];
	struct state load[PAGES], exclusive[PAGES];
	int moved = 0, different = 0;

	if (!run(s, &instructions[0], load) || !run(s, alone, exclusive)) {
		ksft_test_result_skip("%s: cannot be had\n", states[s].name);
		return;
	}
	for (int n = 0; n < PAGES; n++) {
		if (exclusive[n].flags != load[n].flags && !different)
			ksft_print_msg("page %d: flags %lx, after a load %lx\n", n,
				       exclusive[n].flags, load[n].flags);
		moved += states[s].keeps_frame && !exclusive[n].kept;
		different += exclusive[n].flags != load[n].flags;
	}
	ksft_print_msg("%d pages are copied, %d are not as after a load\n",
		       moved, different);
	ksft_test_result(!moved && !different,
			 "a lone load-exclusive leaves a page as it is: %s\n",
			 states[s].name);
}

int main(void)
{
	ksft_print_header();
	page = getpagesize();
	if (!set_mode(ON))
		ksft_exit_skip("the kernel has no write-intent faults\n");
	if (access("/proc/kpageflags", R_OK))
		ksft_exit_skip("needs root and /proc/kpageflags\n");
	catch_signals();

	ksft_set_plan(ARRAY_SIZE(states));
	for (size_t s = 0; s < ARRAY_SIZE(states); s++)
		test(s);
	ksft_finished();
}
