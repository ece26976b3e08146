// SPDX-License-Identifier: GPL-2.0
/*
 * Zero pages as a source of I/O, and holes of files, once for each colour. Its
 * argument is the directory for files, on any file system; on one with DAX its
 * holes are tested, too.
 */
#define _GNU_SOURCE
#include <linux/elf.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "zero_page.h"

#define NAME		"zero_page_io.file"
#define CORE_PATTERN	"/proc/sys/kernel/core_pattern"

static bool vmsplice_to_pipe(const struct zero_pages *z, unsigned long color,
			     const char **skipped)
{
	char *page = zero_page_of_color(z, color);
	char *buffer = malloc(z->page);
	struct iovec from = { page, z->page };
	int ends[2];
	bool good;

	memset(buffer, 0x5a, z->page);
	if (pipe(ends))
		return false;
	if (vmsplice(ends[1], &from, 1, 0) != (ssize_t)z->page)
		return skip(skipped, "vmsplice() refused");
	/* A copy by now: the pipe still holds the zero page. */
	memset(page, 0x5a, z->page);
	good = read(ends[0], buffer, z->page) == (ssize_t)z->page &&
	       all_zero(buffer, z->page);
	close(ends[0]);
	close(ends[1]);
	return good && zero_pages_are_zero(z);
}

static bool write_to_file(const struct zero_pages *z, unsigned long color,
			  const char **skipped)
{
	char *page = zero_page_of_color(z, color);
	char *buffer = malloc(z->page);
	int fd = open(NAME, O_RDWR | O_CREAT | O_TRUNC, 0600);
	bool good;

	memset(buffer, 0x5a, z->page);
	good = write(fd, page, z->page) == (ssize_t)z->page &&
	       pread(fd, buffer, z->page, 0) == (ssize_t)z->page &&
	       all_zero(buffer, z->page) && is_own_zero_page(z, page);
	close(fd);
	return good;
}

/* The device reads from the zero page itself: pinned, then unpinned. */
static bool direct_write(const struct zero_pages *z, unsigned long color,
			 const char **skipped)
{
	char *page = zero_page_of_color(z, color);
	char *buffer = map_pages(z, 1);
	int fd = open(NAME, O_RDWR | O_CREAT | O_DIRECT, 0600);
	__u64 pfn = pfn_of(z, page);
	bool good = true;

	if (fd < 0)
		return skip(skipped, "no O_DIRECT");
	/* Often enough for a reference too few each time to be noticed. */
	for (int i = 0; i < 1000 && good; i++)
		good = pwrite(fd, page, z->page, 0) == (ssize_t)z->page;
	memset(buffer, 0x5a, z->page);
	good = good && pread(fd, buffer, z->page, 0) == (ssize_t)z->page &&
	       all_zero(buffer, z->page);
	close(fd);
	return good && pfn_of(z, page) == pfn && is_own_zero_page(z, page);
}

/* A device that writes there gets a page of the process's own. */
static bool direct_read(const struct zero_pages *z, unsigned long color,
			const char **skipped)
{
	char *page = zero_page_of_color(z, color);
	char *buffer = map_pages(z, 1);
	int fd = open(NAME, O_RDWR | O_CREAT | O_DIRECT, 0600);
	bool good;

	if (fd < 0)
		return skip(skipped, "no O_DIRECT");
	memset(buffer, 0x5a, z->page);
	good = pwrite(fd, buffer, z->page, 0) == (ssize_t)z->page &&
	       pread(fd, page, z->page, 0) == (ssize_t)z->page &&
	       all_equal(page, 0x5a, z->page);
	close(fd);
	return good && !is_zero_page(z, page) && zero_pages_are_zero(z);
}

/* Where the core file has the contents of @address, -1 if it has none. */
static off_t offset_in_core(int fd, uintptr_t address)
{
	struct elf64_hdr head;
	struct elf64_phdr segment;

	if (pread(fd, &head, sizeof(head), 0) != sizeof(head))
		return -1;
	for (int i = 0; i < head.e_phnum; i++) {
		if (pread(fd, &segment, sizeof(segment),
			  head.e_phoff + i * sizeof(segment)) != sizeof(segment))
			return -1;
		if (segment.p_type == PT_LOAD && segment.p_vaddr <= address &&
		    address < segment.p_vaddr + segment.p_filesz)
			return segment.p_offset + (address - segment.p_vaddr);
	}
	return -1;
}

static bool core_dump(const struct zero_pages *z, unsigned long color,
		      const char **skipped)
{
	struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };
	char *buffer = malloc(z->page), *page = zero_page_of_color(z, color);
	char path[64];
	int status, fd;
	off_t offset;
	bool good;
	pid_t child;

	/* Next to a page with contents, so that the mapping is dumped. */
	child = fork();
	if (!child) {
		setrlimit(RLIMIT_CORE, &unlimited);
		abort();
	}
	waitpid(child, &status, 0);
	if (!WIFSIGNALED(status) || !WCOREDUMP(status))
		return skip(skipped, "no core dumps");
	snprintf(path, sizeof(path), "zero_page_io.core.%d", child);
	fd = open(path, O_RDONLY);
	offset = offset_in_core(fd, (uintptr_t)page);
	memset(buffer, 0x5a, z->page);
	good = offset > 0 && pread(fd, buffer, z->page, offset) == (ssize_t)z->page &&
	       all_zero(buffer, z->page);
	close(fd);
	unlink(path);
	return good && is_own_zero_page(z, page);
}

/*
 * Reading a hole of a file on persistent memory maps a zero page, writing it
 * replaces that by the file's own. The offset need not have the colour of the
 * address.
 */
static bool dax_hole(const struct zero_pages *z, unsigned long color,
		     const char **skipped)
{
	int fd = open(NAME, O_RDWR | O_CREAT | O_TRUNC, 0600);
	size_t bytes = 2 * z->colors * z->page;
	struct statx stat;
	char *map, *page;
	bool good;

	if (fd < 0 || statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &stat) ||
	    !(stat.stx_attributes & STATX_ATTR_DAX))
		return skip(skipped, "no DAX");
	if (ftruncate(fd, bytes))
		return false;
	map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, z->page);
	close(fd);
	if (map == MAP_FAILED)
		return false;
	page = page_of_color(z, map, color);
	touch(page);
	good = is_own_zero_page(z, page) && all_zero(page, z->page);
	memset(page, 0x5a, z->page);
	good = good && !is_zero_page(z, page) && all_equal(page, 0x5a, z->page);
	munmap(map, bytes);
	return good && zero_pages_are_zero(z);
}

static const struct zero_page_case cases[] = {
	{ "vmsplice", vmsplice_to_pipe },
	{ "write to a file", write_to_file },
	{ "O_DIRECT write", direct_write },
	{ "O_DIRECT read", direct_read },
	{ "core dump", core_dump },
	{ "DAX hole", dax_hole },
};

int main(int argc, char **argv)
{
	struct zero_pages z = zero_pages_open();

	if (argc > 1 && chdir(argv[1]))
		ksft_exit_fail_msg("%s: %s\n", argv[1], strerror(errno));
	set_text(CORE_PATTERN, "zero_page_io.core.%p");
	ksft_set_plan(ARRAY_SIZE(cases) * z.colors + 1);
	run_matrix(&z, cases, ARRAY_SIZE(cases));
	unlink(NAME);
	ksft_finished();
}
