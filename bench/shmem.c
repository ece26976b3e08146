// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hugepage.h"
#include "result.h"
#include "shmem.h"
#include "thp.h"

#define POLICY	"/sys/kernel/mm/transparent_hugepage/shmem_enabled"

static bool set_policy(void)
{
	FILE *file = fopen(POLICY, "we");
	bool ok;

	if (!file)
		return false;
	ok = fputs("advise", file) >= 0;
	return !fclose(file) && ok;
}

static bool is_huge(const struct memory *memory)
{
	return memory_smaps(memory->start, memory->size, "ShmemPmdMapped") ==
	       (int64_t)memory->size;
}

static int map_whole(struct shmem *shmem)
{
	char *map;
	int error;

	error = memory_map(&shmem->whole, HUGEPAGE_BYTES, HUGEPAGE_BYTES);
	if (error)
		return error;
	map = mmap(shmem->whole.start, HUGEPAGE_BYTES, PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_FIXED, shmem->fd, 0);
	if (map == MAP_FAILED ||
	    madvise(map, HUGEPAGE_BYTES, MADV_HUGEPAGE)) {
		error = -errno;
		memory_unmap(&shmem->whole);
		return error;
	}
	*map = 0;
	/*
	 * Requests a huge page at once, under any policy for faults and without
	 * root. smaps shows whether it came.
	 */
	if (!is_huge(&shmem->whole))
		(void)madvise(map, HUGEPAGE_BYTES, MADV_COLLAPSE);
	return 0;
}

enum status shmem_get(struct run *run, struct shmem *shmem, bool set,
		      bool *unavailable)
{
	int error;

	*unavailable = false;
	if (set && !set_policy())
		return refuse(run, "--set-thp cannot write %s (%s): run as root or leave it out",
			      POLICY, strerror(errno));
	shmem->fd = memfd_create("ftbench", MFD_CLOEXEC);
	if (shmem->fd < 0 || ftruncate(shmem->fd, HUGEPAGE_BYTES))
		return wrong(run, "memfd_create: %s", strerror(errno));
	error = map_whole(shmem);
	if (!error && is_huge(&shmem->whole))
		return STATUS_OK;

	if (!error)
		memory_unmap(&shmem->whole);
	close(shmem->fd);
	*unavailable = true;
	if (thp_pmd_bytes() != HUGEPAGE_BYTES)
		return result_unavailable(run,
					  "this kernel has no transparent huge pages of 2 MiB");
	return result_unavailable(run,
				  "shared memory gets no huge page: as root, echo advise > %s",
				  POLICY);
}

void shmem_put(struct shmem *shmem)
{
	memory_unmap(&shmem->whole);
	close(shmem->fd);
}

int shmem_map_pieces(const struct shmem *shmem, struct memory *memory,
		     size_t pages, size_t colors)
{
	int error = memory_map(memory, pages * page_size(), HUGEPAGE_BYTES);

	/* A PMD cannot map pieces that are not at their offset in the file. */
	for (size_t at = 0; at < pages && !error; at += colors) {
		size_t nr = pages - at < colors ? pages - at : colors;
		void *map = mmap(memory->start + at * page_size(),
				 nr * page_size(), PROT_READ,
				 MAP_SHARED | MAP_FIXED, shmem->fd, 0);

		if (map == MAP_FAILED) {
			error = -errno;
			memory_unmap(memory);
		}
	}
	return error;
}
