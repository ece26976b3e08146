// SPDX-License-Identifier: GPL-2.0
/*
 * What in mm/ maps, compares or refuses zero pages, once for each colour. A
 * case says why it was skipped where the kernel lacks what it is about.
 */
#define _GNU_SOURCE
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "zero_page.h"

#define THP	"/sys/kernel/mm/transparent_hugepage/"
#define KSM	"/sys/kernel/mm/ksm/"

/* In <linux/userfaultfd.h> since 6.8. */
#ifndef _UFFDIO_MOVE
#define _UFFDIO_MOVE		0x05
struct uffdio_move {
	__u64 dst, src, len, mode;
	__s64 move;
};

#define UFFDIO_MOVE		_IOWR(UFFDIO, _UFFDIO_MOVE, struct uffdio_move)
#define UFFD_FEATURE_MOVE	_BITULL(16)
#endif

static bool process_vm_readv_of_untouched(const struct zero_pages *z,
					  unsigned long color, const char **skipped)
{
	char *page = page_of_color(z, map_pages(z, z->colors), color);
	char *buffer = malloc(z->page);
	struct iovec to = { buffer, z->page }, from = { page, z->page };

	memset(buffer, 0x5a, z->page);
	if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) < 0)
		return skip(skipped, "process_vm_readv() refused");
	return all_zero(buffer, z->page) && is_own_zero_page(z, page);
}

/* The write goes to a copy, as the process's own would. */
static bool process_vm_writev_to_zero_page(const struct zero_pages *z,
					   unsigned long color, const char **skipped)
{
	char *page = zero_page_of_color(z, color);
	char *buffer = malloc(z->page);
	struct iovec from = { buffer, z->page }, to = { page, z->page };

	memset(buffer, 0x5a, z->page);
	if (process_vm_writev(getpid(), &from, 1, &to, 1, 0) < 0)
		return skip(skipped, "process_vm_writev() refused");
	return !is_zero_page(z, page) &&
		      all_equal(page, 0x5a, z->page) && zero_pages_are_zero(z);
}

static int userfaultfd_over(char *page, size_t bytes, __u64 features,
			    __u64 ioctl_bit)
{
	struct uffdio_api api = { .api = UFFD_API, .features = features };
	struct uffdio_register range = {
		.range = { (uintptr_t)page, bytes },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd < 0)
		return -1;
	if (ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &range) ||
	    !(range.ioctls & _BITULL(ioctl_bit))) {
		close(fd);
		return -1;
	}
	return fd;
}

static bool uffd_zeropage(const struct zero_pages *z, unsigned long color,
			  const char **skipped)
{
	char *page = page_of_color(z, map_pages(z, z->colors), color);
	struct uffdio_zeropage zero = { .range = { (uintptr_t)page, z->page } };
	int fd = userfaultfd_over(page, z->page, 0, _UFFDIO_ZEROPAGE);
	bool good;

	if (fd < 0)
		return skip(skipped, "no userfaultfd with UFFDIO_ZEROPAGE");
	good = !ioctl(fd, UFFDIO_ZEROPAGE, &zero) && is_own_zero_page(z, page) &&
	       all_zero(page, z->page);
	close(fd);
	if (!good)
		return false;
	memset(page, 0x5a, z->page);
	return !is_zero_page(z, page) && zero_pages_are_zero(z);
}

static bool uffd_move(const struct zero_pages *z, unsigned long color,
		      const char **skipped)
{
	/* From another colour, so that the page has to change. */
	char *from = zero_page_of_color(z, (color + 1) % z->colors);
	char *to = page_of_color(z, map_pages(z, z->colors), color);
	struct uffdio_move move = {
		.dst = (uintptr_t)to, .src = (uintptr_t)from, .len = z->page,
	};
	int fd = userfaultfd_over(to, z->page, UFFD_FEATURE_MOVE, _UFFDIO_MOVE);
	bool good;

	if (fd < 0)
		return skip(skipped, "no userfaultfd with UFFDIO_MOVE");
	good = !ioctl(fd, UFFDIO_MOVE, &move) && is_own_zero_page(z, to) &&
	       all_zero(to, z->page);
	close(fd);
	return good;
}

/* Memory of one huge page that THP may use, NULL without THP. */
static char *map_huge(size_t *bytes)
{
	long huge = read_number(THP "hpage_pmd_size");
	char *map, *aligned;

	if (huge < 0)
		return NULL;
	*bytes = huge;
	map = mmap(NULL, 2 * huge, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	aligned = (char *)(((uintptr_t)map + huge - 1) & -(uintptr_t)huge);
	return madvise(aligned, huge, MADV_HUGEPAGE) ? NULL : aligned;
}

static bool huge_zero_page_split(const struct zero_pages *z,
				 unsigned long color, const char **skipped)
{
	size_t huge;
	char *map = map_huge(&huge), *page;
	bool good = true;

	if (!map)
		return skip(skipped, "no THP");
	touch(map);
	if (!is_zero_page(z, map + huge - z->page))
		return skip(skipped, "no huge zero page");
	page = page_of_color(z, map, color);
	if (mprotect(page, z->page, PROT_READ))
		return false;
	for (char *p = page; p < map + huge; p += z->colors * z->page)
		good &= is_own_zero_page(z, p) && all_zero(p, z->page);
	munmap(map, huge);
	return good;
}

/*
 * A huge page of which most is zero is split under memory pressure, and its
 * zero subpages are replaced by zero pages.
 */
static bool underused_huge_page(const struct zero_pages *z, unsigned long color,
				const char **skipped)
{
	size_t huge, zero = 0, subpages = 0;
	char *map;

	if (read_number(THP "shrink_underused") < 0)
		return skip(skipped, "no shrinker of underused huge pages");
	map = map_huge(&huge);
	if (!map)
		return skip(skipped, "no THP");
	set_number(THP "shrink_underused", 1);
	set_number(THP "khugepaged/max_ptes_none", 0);
	memset(map, 0x5a, z->page);
	if (!pfn_of(z, map + huge - z->page)) {
		munmap(map, huge);
		return skip(skipped, "no huge page");
	}
	write_number("/proc/sys/vm/drop_caches", 2);

	for (char *p = page_of_color(z, map + z->colors * z->page, color);
	     p < map + huge; p += z->colors * z->page) {
		subpages++;
		zero += is_own_zero_page(z, p) && all_zero(p, z->page);
	}
	if (!all_equal(map, 0x5a, z->page))
		return false;
	munmap(map, huge);
	return zero == subpages;
}

/* KSM's zero pages are zero pages that are counted, and dirty. */
static bool ksm_merges_into_zero_page(const struct zero_pages *z,
				      unsigned long color, const char **skipped)
{
	char *page = page_of_color(z, map_pages(z, z->colors), color);
	long merged = read_number(KSM "ksm_zero_pages");
	long scans;
	bool good;

	if (merged < 0)
		return skip(skipped, "no KSM");
	memset(page, 0x5a, z->page);
	memset(page, 0, z->page);
	if (is_zero_page(z, page) || madvise(page, z->page, MADV_MERGEABLE))
		return false;
	set_number(KSM "use_zero_pages", 1);
	set_number(KSM "smart_scan", 0);
	set_number(KSM "pages_to_scan", 1000);
	set_number(KSM "sleep_millisecs", 0);
	scans = read_number(KSM "full_scans");
	set_number(KSM "run", 1);
	for (int ms = 0; ms < 10000 && read_number(KSM "full_scans") < scans + 3; ms++)
		usleep(1000);
	set_number(KSM "run", 0);
	good = is_own_zero_page(z, page) && all_zero(page, z->page) &&
	       read_number(KSM "ksm_zero_pages") == merged + 1;
	/* Copied on write, uncounted, and the zero page left as it was. */
	memset(page, 0x5a, z->page);
	good = good && !is_zero_page(z, page) && zero_pages_are_zero(z) &&
	       read_number(KSM "ksm_zero_pages") == merged;
	madvise(page, z->page, MADV_UNMERGEABLE);
	return good;
}

static bool not_compacted(const struct zero_pages *z, unsigned long color,
			  const char **skipped)
{
	char *page = zero_page_of_color(z, color);
	__u64 pfn = pfn_of(z, page);

	if (!write_number("/proc/sys/vm/compact_memory", 1))
		return skip(skipped, "no compaction");
	/* The zero page is not movable. */
	return pfn_of(z, page) == pfn && is_own_zero_page(z, page) &&
		      all_zero(page, z->page);
}

static bool move_pages_refuses(const struct zero_pages *z, unsigned long color,
			       const char **skipped)
{
	char *page = zero_page_of_color(z, color);
	void *pages[] = { page };
	int nodes[] = { 0 }, status[] = { 1 };

	if (syscall(SYS_move_pages, 0, 1, pages, nodes, status, 0) < 0)
		return skip(skipped, "no move_pages()");
	/* move_pages(2): -EFAULT for a zero page, -ENOENT in later kernels */
	return (status[0] == -EFAULT || status[0] == -ENOENT) &&
		      is_own_zero_page(z, page);
}

static bool soft_offline_refused(const struct zero_pages *z,
				 unsigned long color, const char **skipped)
{
	char *page = zero_page_of_color(z, color);

#ifndef MADV_SOFT_OFFLINE
#define MADV_SOFT_OFFLINE 101
#endif
	if (!madvise(page, z->page, MADV_SOFT_OFFLINE))
		return false;
	if (errno == EINVAL || errno == EPERM)
		return skip(skipped, "no soft offlining");
	return is_own_zero_page(z, page) && all_zero(page, z->page);
}

/* The mapping is in no LRU list: there is nothing to write out. */
static bool reclaim(const struct zero_pages *z, unsigned long color,
		    const char **skipped)
{
	char *page = zero_page_of_color(z, color);

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif
	if (madvise(page, z->page, MADV_PAGEOUT))
		return skip(skipped, "no MADV_PAGEOUT");
	if (!all_zero(page, z->page) || !is_own_zero_page(z, page))
		return false;
	memset(page, 0x5a, z->page);
	madvise(page, z->page, MADV_PAGEOUT);
	return all_equal(page, 0x5a, z->page) && zero_pages_are_zero(z);
}

static const struct zero_page_case cases[] = {
	{ "process_vm_readv of an untouched page", process_vm_readv_of_untouched },
	{ "process_vm_writev", process_vm_writev_to_zero_page },
	{ "UFFDIO_ZEROPAGE", uffd_zeropage },
	{ "UFFDIO_MOVE from another colour", uffd_move },
	{ "split of the huge zero page", huge_zero_page_split },
	{ "underused huge page", underused_huge_page },
	{ "KSM", ksm_merges_into_zero_page },
	{ "compaction", not_compacted },
	{ "move_pages", move_pages_refuses },
	{ "soft offlining", soft_offline_refused },
	{ "reclaim", reclaim },
};

int main(void)
{
	struct zero_pages z = zero_pages_open();

	ksft_set_plan(ARRAY_SIZE(cases) * z.colors + 1);
	run_matrix(&z, cases, ARRAY_SIZE(cases));
	ksft_finished();
}
