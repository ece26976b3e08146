// SPDX-License-Identifier: GPL-2.0
/* Which zero page backs which address, and what becomes of it. */
#define _GNU_SOURCE
#include <sys/wait.h>

#include "zero_page.h"

#define PAGES 4096

static bool untouched_by_fork(const struct zero_pages *z, unsigned long color,
			      const char **skipped)
{
	char *map = map_pages(z, z->colors + 1), *page;
	__u64 pfn;
	int status;
	pid_t child;

	/*
	 * fork() copies the page tables only of a mapping that has pages of
	 * its own; otherwise the child would begin with none.
	 */
	memset(map, 0x5a, z->page);
	page = page_of_color(z, map + z->page, color);
	touch(page);
	pfn = pfn_of(z, page);
	child = fork();
	if (!child) {
		/* The descriptor that was inherited shows the parent. */
		struct zero_pages own = *z;
		bool good;

		own.pagemap = open("/proc/self/pagemap", O_RDONLY);
		good = pfn_of(&own, page) == pfn && is_own_zero_page(&own, page) &&
		       all_zero(page, z->page);
		/* The child's copy is its own. */
		memset(page, 0x5a, z->page);
		good = good && !is_zero_page(&own, page);
		_exit(good ? 0 : 1);
	}
	waitpid(child, &status, 0);
	return child > 0 && !status && pfn_of(z, page) == pfn &&
	       all_zero(page, z->page);
}

static bool mremap_to_next_color(const struct zero_pages *z,
				 unsigned long color, const char **skipped)
{
	char *page = zero_page_of_color(z, color);
	__u64 pfn = pfn_of(z, page);
	char *to = page_of_color(z, map_pages(z, z->colors),
				 (color + 1) % z->colors);

	to = mremap(page, z->page, z->page, MREMAP_MAYMOVE | MREMAP_FIXED, to);
	if (to == MAP_FAILED)
		return false;
	/* It keeps the page it had, and that stays a zero page. */
	if (pfn_of(z, to) != pfn || !is_zero_page(z, to) ||
	    !all_zero(to, z->page))
		return false;
	/* Fetched anew it is the page of its new address. */
	madvise(to, z->page, MADV_DONTNEED);
	touch(to);
	return is_own_zero_page(z, to);
}

static bool mprotect_and_back(const struct zero_pages *z, unsigned long color,
			      const char **skipped)
{
	char *page = zero_page_of_color(z, color);
	__u64 pfn = pfn_of(z, page);

	if (mprotect(page, z->page, PROT_READ) || pfn_of(z, page) != pfn)
		return false;
	if (mprotect(page, z->page, PROT_NONE))
		return false;
	if (mprotect(page, z->page, PROT_READ | PROT_WRITE))
		return false;
	touch(page);
	if (!is_own_zero_page(z, page) || !all_zero(page, z->page))
		return false;
	memset(page, 0x5a, z->page);
	return !is_zero_page(z, page) && zero_pages_are_zero(z);
}

static bool partial_munmap(const struct zero_pages *z, unsigned long color,
			   const char **skipped)
{
	char *map = map_pages(z, 3 * z->colors);
	char *page = page_of_color(z, map, color) + z->colors * z->page;

	for (size_t i = 0; i < 3 * z->colors; i++)
		touch(map + i * z->page);
	if (munmap(page, z->page))
		return false;
	for (char *p = map; p < map + 3 * z->colors * z->page; p += z->page)
		if (p != page && (!is_own_zero_page(z, p) || !all_zero(p, z->page)))
			return false;
	return true;
}

static bool write_after_read(const struct zero_pages *z, unsigned long color,
			     const char **skipped)
{
	char *page = zero_page_of_color(z, color);

	memset(page, 0x5a, z->page);
	return !is_zero_page(z, page) && all_equal(page, 0x5a, z->page) &&
	       zero_pages_are_zero(z);
}

static bool read_only_mapping(const struct zero_pages *z, unsigned long color,
			      const char **skipped)
{
	char *map = mmap(NULL, z->colors * z->page, PROT_READ,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *page = page_of_color(z, map, color);
	int zero = open("/dev/zero", O_RDONLY);
	bool refused;

	touch(page);
	/* The kernel does not write there on a user's behalf either. */
	refused = read(zero, page, z->page) < 0 && errno == EFAULT;
	close(zero);
	return refused && is_own_zero_page(z, page) && all_zero(page, z->page);
}

static bool dev_zero_private(const struct zero_pages *z, unsigned long color,
			     const char **skipped)
{
	int fd = open("/dev/zero", O_RDWR);
	char *map = mmap(NULL, z->colors * z->page, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE, fd, 0);
	char *page;

	close(fd);
	if (map == MAP_FAILED)
		return false;
	madvise(map, z->colors * z->page, MADV_NOHUGEPAGE);
	page = page_of_color(z, map, color);
	touch(page);
	return is_own_zero_page(z, page) && all_zero(page, z->page);
}

static bool dev_zero_read_into(const struct zero_pages *z, unsigned long color,
			       const char **skipped)
{
	char *page = zero_page_of_color(z, color);
	int fd = open("/dev/zero", O_RDONLY);
	bool whole = read(fd, page, z->page) == (ssize_t)z->page;

	close(fd);
	/* A page of its own by now, for it was written to. */
	return whole && !is_zero_page(z, page) && all_zero(page, z->page);
}

static bool mlock_of_zero_page(const struct zero_pages *z, unsigned long color,
			       const char **skipped)
{
	char *page = zero_page_of_color(z, color);

	mprotect(page, z->page, PROT_READ);
	return !mlock(page, z->page) && is_own_zero_page(z, page) &&
	       !munlock(page, z->page) && is_own_zero_page(z, page) &&
	       all_zero(page, z->page);
}

static bool dontneed_and_again(const struct zero_pages *z, unsigned long color,
			       const char **skipped)
{
	char *page = zero_page_of_color(z, color);

	if (madvise(page, z->page, MADV_DONTNEED) || pfn_of(z, page))
		return false;
	touch(page);
	return is_own_zero_page(z, page) && all_zero(page, z->page);
}

static bool populate_read(const struct zero_pages *z, unsigned long color,
			  const char **skipped)
{
	char *page = page_of_color(z, map_pages(z, z->colors), color);

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif
	return !madvise(page, z->page, MADV_POPULATE_READ) &&
	       is_own_zero_page(z, page);
}

static const struct zero_page_case cases[] = {
	{ "fork", untouched_by_fork },
	{ "mremap to another colour", mremap_to_next_color },
	{ "mprotect", mprotect_and_back },
	{ "partial munmap", partial_munmap },
	{ "write after read", write_after_read },
	{ "read-only mapping", read_only_mapping },
	{ "/dev/zero mapped private", dev_zero_private },
	{ "/dev/zero read into it", dev_zero_read_into },
	{ "mlock", mlock_of_zero_page },
	{ "MADV_DONTNEED", dontneed_and_again },
	{ "MADV_POPULATE_READ", populate_read },
};

static void consecutive_pages(const struct zero_pages *z)
{
	char *map = map_pages(z, PAGES);
	size_t zero = 0, own = 0, distinct = 0;
	__u64 *seen = calloc(PAGES, sizeof(*seen));

	for (size_t i = 0; i < PAGES; i++) {
		char *page = map + i * z->page;
		__u64 pfn;
		size_t s = 0;

		touch(page);
		pfn = pfn_of(z, page);
		zero += is_zero_page(z, page) && all_zero(page, z->page);
		own += pfn % z->colors == color_of_address(z, page);
		while (s < distinct && seen[s] != pfn)
			s++;
		if (s == distinct)
			seen[distinct++] = pfn;
	}
	ksft_test_result(zero == PAGES, "%d consecutive pages are zero pages\n",
			 PAGES);
	ksft_test_result(own == PAGES, "each has the colour of its address\n");
	ksft_test_result(distinct == z->colors,
			 "as many pages behind them as there are colours\n");
	munmap(map, PAGES * z->page);
	free(seen);
}

int main(void)
{
	struct zero_pages z = zero_pages_open();

	ksft_set_plan(3 + ARRAY_SIZE(cases) * z.colors + 1);
	consecutive_pages(&z);
	run_matrix(&z, cases, ARRAY_SIZE(cases));
	ksft_finished();
}
