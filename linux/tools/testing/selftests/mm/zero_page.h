/* SPDX-License-Identifier: GPL-2.0 */
/* What the tests of the zero pages ask the kernel, and how they report. */
#ifndef SELFTESTS_MM_ZERO_PAGE_H
#define SELFTESTS_MM_ZERO_PAGE_H

#include <fcntl.h>
#include <linux/const.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../kselftest.h"

/* Documentation/admin-guide/mm/pagemap.rst */
#define PAGEMAP_PRESENT		_BITULL(63)
#define PAGEMAP_PFN		(_BITULL(55) - 1)
#define KPAGEFLAGS_ZERO_PAGE	_BITULL(24)

struct zero_pages {
	unsigned long colors;	/* in use */
	size_t page;		/* bytes */
	int pagemap;		/* file descriptors */
	int kpageflags;
};

/* The number in a sysfs or proc file, -1 if there is none. */
static inline long read_number(const char *path)
{
	char text[32] = "";
	long number = -1;
	int fd = open(path, O_RDONLY);

	if (fd < 0)
		return -1;
	if (read(fd, text, sizeof(text) - 1) > 0)
		number = atol(text);
	close(fd);
	return number;
}

static inline bool write_text(const char *path, const char *text)
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

/* A setting that is put back when the test ends. */
static struct setting {
	const char *path;
	char text[256];
} settings[8];

static pid_t main_process;

static inline void restore_settings(void)
{
	if (getpid() != main_process)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(settings) && settings[i].path; i++)
		write_text(settings[i].path, settings[i].text);
}

/* Writes to a setting; returns false if there is none, or it refuses. */
static inline bool set_text(const char *path, const char *text)
{
	size_t i = 0;
	int fd;

	while (i < ARRAY_SIZE(settings) && settings[i].path &&
	       strcmp(settings[i].path, path))
		i++;
	if (i == ARRAY_SIZE(settings))
		ksft_exit_fail_msg("no room to remember %s\n", path);
	if (!settings[i].path) {
		fd = open(path, O_RDONLY);
		if (fd < 0)
			return false;
		if (read(fd, settings[i].text, sizeof(settings[i].text) - 1) > 0)
			settings[i].path = path;
		close(fd);
	}
	if (!main_process) {
		main_process = getpid();
		atexit(restore_settings);
	}
	return write_text(path, text);
}

static inline bool set_number(const char *path, long number)
{
	char text[32];

	snprintf(text, sizeof(text), "%ld", number);
	return set_text(path, text);
}

static inline bool write_number(const char *path, long number)
{
	char text[32];

	snprintf(text, sizeof(text), "%ld", number);
	return write_text(path, text);
}

/* The colour of an address, or of the page that backs it. */
static inline unsigned long color_of_address(const struct zero_pages *z,
					     const void *address)
{
	return (uintptr_t)address / z->page % z->colors;
}

/* The pfn of a mapped page, 0 if there is none. */
static inline __u64 pfn_of(const struct zero_pages *z, const void *address)
{
	off_t offset = (uintptr_t)address / z->page * sizeof(__u64);
	__u64 entry;

	if (pread(z->pagemap, &entry, sizeof(entry), offset) != sizeof(entry))
		ksft_exit_fail_msg("pagemap: %s\n", strerror(errno));
	return entry & PAGEMAP_PRESENT ? entry & PAGEMAP_PFN : 0;
}

static inline bool is_zero_page(const struct zero_pages *z, const void *address)
{
	__u64 pfn = pfn_of(z, address), flags;

	if (!pfn)
		return false;
	if (pread(z->kpageflags, &flags, sizeof(flags), pfn * sizeof(flags)) != sizeof(flags))
		ksft_exit_fail_msg("kpageflags: %s\n", strerror(errno));
	return flags & KPAGEFLAGS_ZERO_PAGE;
}

/* A zero page, and the one that has the colour of the address. */
static inline bool is_own_zero_page(const struct zero_pages *z,
				    const void *address)
{
	return is_zero_page(z, address) &&
	       pfn_of(z, address) % z->colors == color_of_address(z, address);
}

static inline bool all_zero(const void *start, size_t bytes)
{
	const char *p = start;

	return !*p && !memcmp(p, p + 1, bytes - 1);
}

static inline bool all_equal(const void *start, int value, size_t bytes)
{
	const unsigned char *p = start;

	return *p == (unsigned char)value && !memcmp(p, p + 1, bytes - 1);
}

/* Private anonymous memory that is not backed by huge pages. */
static inline char *map_pages(const struct zero_pages *z, size_t pages)
{
	char *map = mmap(NULL, pages * z->page, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED)
		ksft_exit_fail_msg("mmap: %s\n", strerror(errno));
	/* Fails where the kernel has no THP, which is as good. */
	madvise(map, pages * z->page, MADV_NOHUGEPAGE);
	return map;
}

/* A page of @map that has the colour asked for; @map has one of each. */
static inline char *page_of_color(const struct zero_pages *z, char *map,
				  unsigned long color)
{
	unsigned long first = color_of_address(z, map);

	return map + (color + z->colors - first) % z->colors * z->page;
}

/* A load that the compiler does not drop. */
static inline void touch(const void *address)
{
	__atomic_load_n((const char *)address, __ATOMIC_RELAXED);
}

/*
 * As many pages in a row as there could be colours are backed by as many pages
 * in a row, from the one whose address has colour 0.
 */
static inline unsigned long count_colors(const struct zero_pages *z)
{
	enum { MOST = 256 };
	char *map = map_pages(z, MOST);
	__u64 low = -1, high = 0;

	for (size_t i = 0; i < MOST; i++) {
		__u64 pfn;

		touch(map + i * z->page);
		pfn = pfn_of(z, map + i * z->page);
		low = pfn < low ? pfn : low;
		high = pfn > high ? pfn : high;
	}
	munmap(map, MOST * z->page);
	if (!low || high - low >= MOST)
		ksft_exit_fail_msg("zero pages are not in a row\n");
	return high - low + 1;
}

/*
 * Begins the report. A kernel without the feature has one colour, and all
 * that is tested holds for it too.
 */
static inline struct zero_pages zero_pages_open(void)
{
	struct zero_pages z = {
		.page = sysconf(_SC_PAGESIZE),
		.pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC),
		.kpageflags = open("/proc/kpageflags", O_RDONLY | O_CLOEXEC),
	};

	/* Whole lines, also where a child shares the buffer. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("KTAP version 1");
	if (z.pagemap < 0 || z.kpageflags < 0) {
		puts("1..0 # SKIP needs root, /proc/self/pagemap and /proc/kpageflags");
		exit(KSFT_SKIP);
	}
	z.colors = count_colors(&z);
	printf("# %lu colours of %zu bytes\n", z.colors, z.page);
	return z;
}

/*
 * A fresh page of the colour asked for, read once: all that a case of the
 * matrix works on. Its neighbours are mapped too, but untouched.
 */
static inline char *zero_page_of_color(const struct zero_pages *z,
				       unsigned long color)
{
	char *page = page_of_color(z, map_pages(z, z->colors), color);

	touch(page);
	return page;
}

/* Every page that this kernel hands out, looked at through fresh mappings. */
static inline bool zero_pages_are_zero(const struct zero_pages *z)
{
	char *map = map_pages(z, z->colors);
	bool zero = all_zero(map, z->colors * z->page);

	munmap(map, z->colors * z->page);
	return zero;
}

/*
 * One row of a matrix of what is done to a zero page and its colour. Returns
 * whether all was as it should be, or skip().
 */
struct zero_page_case {
	const char *name;
	bool (*run)(const struct zero_pages *z, unsigned long color,
		    const char **skipped);
};

static inline bool skip(const char **skipped, const char *reason)
{
	*skipped = reason;
	return false;
}

/* One line of the report for each cell, and one for the pages at the end. */
static inline void run_matrix(const struct zero_pages *z,
			      const struct zero_page_case *cases, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		for (unsigned long color = 0; color < z->colors; color++) {
			const char *skipped = NULL;
			bool good = cases[i].run(z, color, &skipped);

			if (skipped)
				ksft_test_result_skip("%s, colour %lu: %s\n",
						      cases[i].name, color,
						      skipped);
			else
				ksft_test_result(good, "%s, colour %lu\n",
						 cases[i].name, color);
		}
	}
	ksft_test_result(zero_pages_are_zero(z),
			 "all colours are zero at the end\n");
}

#endif
