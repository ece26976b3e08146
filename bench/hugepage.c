// SPDX-License-Identifier: GPL-2.0
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hugepage.h"
#include "result.h"
#include "thp.h"

#define POOL_DIR	"/sys/kernel/mm/hugepages/hugepages-2048kB"
#define POOL		POOL_DIR "/nr_hugepages"
#define SURPLUS		POOL_DIR "/surplus_hugepages"
#define MAP_2MB		(21 << 26)	/* log2 of the size, at MAP_HUGE_SHIFT */

static bool read_pages(const char *path, size_t *pages)
{
	FILE *file = fopen(path, "re");
	bool ok = file && fscanf(file, "%zu", pages) == 1;

	if (file)
		fclose(file);
	return ok;
}

/*
 * *pages: what was written to nr_hugepages. *surplus: more that leave the pool
 * as soon as their user unmaps them. What is read there is their sum.
 */
static bool read_pool(size_t *pages, size_t *surplus)
{
	if (!read_pages(POOL, pages) || !read_pages(SURPLUS, surplus))
		return false;
	*pages -= *surplus;
	return true;
}

static void write_pool(size_t pages)
{
	FILE *file = fopen(POOL, "we");

	if (!file)
		return;
	/* The pool's size afterwards shows whether this worked. */
	fprintf(file, "%zu", pages);
	fclose(file);
}

/*
 * Two runs at once would read the same size, and the pool keep what one of them
 * adds. Returns what close() unlocks, or -1 where there is no pool.
 */
static int lock_pool(void)
{
	int fd = open(POOL, O_RDONLY | O_CLOEXEC);

	if (fd >= 0)
		flock(fd, LOCK_EX);
	return fd;
}

static char *map_pages(char *at, size_t size)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_2MB;
	void *map = mmap(at, size, PROT_READ | PROT_WRITE,
			 flags | (at ? MAP_FIXED : 0), -1, 0);

	return map == MAP_FAILED ? NULL : map;
}

static void shrink_pool(size_t added)
{
	size_t now, surplus;

	if (read_pool(&now, &surplus) && now >= added)
		write_pool(now - added);
}

void hugetlb_give_back(size_t added)
{
	int lock;

	if (!added)
		return;
	lock = lock_pool();
	shrink_pool(added);
	close(lock);
}

static char *enlarge_and_map(char *at, size_t size, size_t copies,
			     size_t *added)
{
	size_t before, after, surplus;
	char *start;

	if (!read_pool(&before, &surplus))
		return NULL;
	/* The first that a pool gets are its surplus, which others use. */
	write_pool(before + surplus + copies * size / HUGEPAGE_BYTES);
	if (read_pool(&after, &surplus) && after > before)
		*added = after - before;
	start = map_pages(at, size);
	if (!start && *added) {
		shrink_pool(*added);
		*added = 0;
	}
	return start;
}

char *hugetlb_map(char *at, size_t size, bool enlarge, size_t copies,
		  size_t *added)
{
	int lock = lock_pool();
	char *start = map_pages(at, size);

	*added = 0;
	if (!start && enlarge)
		start = enlarge_and_map(at, size, copies, added);
	close(lock);
	return start;
}

enum status hugetlb_unavailable(struct run *run, size_t size)
{
	return result_unavailable(run,
				  "no huge pages of 2 MiB in the hugeTLB pool: as root echo %zu > %s",
				  size / HUGEPAGE_BYTES, POOL);
}

static void fault_in(const struct hugepages *pages)
{
	for (size_t at = 0; at < pages->size; at += HUGEPAGE_BYTES)
		pages->start[at] = 0;
}

static bool all_huge(const struct hugepages *pages)
{
	return memory_smaps(pages->start, pages->size, "AnonHugePages") ==
	       (int64_t)pages->size;
}

/* Does not read the policy: smaps shows whether huge pages came. */
static bool get_transparent(struct hugepages *pages)
{
	if (thp_pmd_bytes() != HUGEPAGE_BYTES ||
	    memory_map(&pages->memory, pages->size, HUGEPAGE_BYTES))
		return false;
	pages->start = pages->memory.start;
	madvise(pages->start, pages->size, MADV_HUGEPAGE);
	fault_in(pages);
	/* Requests huge pages where faults gave none, under any policy. */
	if (!all_huge(pages))
		madvise(pages->start, pages->size, MADV_COLLAPSE);
	if (all_huge(pages))
		return true;
	memory_unmap(&pages->memory);
	return false;
}

enum status hugepages_get(struct run *run, struct hugepages *pages,
			  size_t bytes, bool *unavailable)
{
	memset(pages, 0, sizeof(*pages));
	pages->size = (bytes + HUGEPAGE_BYTES - 1) & ~(HUGEPAGE_BYTES - 1);
	*unavailable = false;
	pages->start = hugetlb_map(NULL, pages->size,
				   param_number(run, "set-pool"), 1,
				   &pages->reserved);
	pages->hugetlb = pages->start;
	if (pages->hugetlb) {
		fault_in(pages);
		result_note(run, "backing", "hugeTLB");
		return STATUS_OK;
	}
	if (get_transparent(pages)) {
		result_note(run, "backing", "transparent huge pages");
		return STATUS_OK;
	}
	*unavailable = true;
	return result_unavailable(run,
				  "no huge page of 2 MiB to be had: as root, give --set-pool or echo %zu > %s, or allow transparent ones",
				  pages->size / HUGEPAGE_BYTES, POOL);
}

void hugepages_put(struct hugepages *pages)
{
	if (pages->hugetlb) {
		munmap(pages->start, pages->size);
		hugetlb_give_back(pages->reserved);
	} else {
		memory_unmap(&pages->memory);
	}
}
