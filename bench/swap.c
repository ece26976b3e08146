// SPDX-License-Identifier: GPL-2.0
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/swap.h>
#include <unistd.h>

#include "swap.h"

/* A swap area's header fills the first page; include/linux/swap.h. */
#define SWAP_HEADER	1024
#define SWAP_MAGIC	"SWAPSPACE2"

/* Writes what mkswap(8) writes: a header without bad pages. */
static bool make_swap(const char *path)
{
	static char header[65536];
	const size_t page = page_size();
	uint32_t *info = (uint32_t *)(header + SWAP_HEADER);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	off_t size;
	bool made;

	if (fd < 0)
		return false;
	size = lseek(fd, 0, SEEK_END);
	info[0] = 1;				/* version */
	info[1] = size / page - 1;		/* last page */
	memcpy(header + page - 10, SWAP_MAGIC, 10);
	made = size > (off_t)page && pwrite(fd, header, page, 0) == (ssize_t)page;
	close(fd);
	return made;
}

const char *swap_on(struct run *run, const char **area)
{
	const char *path;

	if (!param_given(run, "swap"))
		return NULL;
	path = param_text(run, "swap");
	if (!make_swap(path) || swapon(path, 0))
		return "the file of --swap cannot be used for swapping";
	*area = path;
	return NULL;
}

void swap_off(const char *area)
{
	if (area)
		swapoff(area);
}

const char *swap_out_memory(const struct memory *memory)
{
	if (madvise(memory->start, memory->size, MADV_PAGEOUT))
		return "this kernel has no MADV_PAGEOUT (5.4 or later has)";
	if (memory_smaps(memory->start, memory->size, "Rss"))
		return "not all of the memory was swapped out: name a larger area by --swap";
	return NULL;
}

bool swap_reclaim(size_t bytes)
{
	char group[4096], path[4352], text[24];
	ssize_t written = -1;
	int fd;

	if (!memory_cgroup(group, sizeof(group)))
		return false;
	snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.reclaim", group);
	snprintf(text, sizeof(text), "%zu", bytes);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		written = write(fd, text, strlen(text));
		close(fd);
	}
	return written > 0;
}
