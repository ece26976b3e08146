// SPDX-License-Identifier: GPL-2.0
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "zero.h"

/* As in linux/fs.h from 6.7 on, which the C library's headers may lack. */
struct region {
	uint64_t start, end, categories;
};

struct scan {
	uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
	uint64_t category_inverted, category_mask, category_anyof_mask;
	uint64_t return_mask;
};

#define SCAN		_IOWR('f', 16, struct scan)
#define IS_PFNZERO	0x20
#define MOST_REGIONS	512
static void write_ranges(pid_t pid, struct output *output,
			 const struct region *regions, size_t nr)
{
	uint64_t ranges[2 * MOST_REGIONS];

	for (size_t i = 0; i < nr; i++) {
		ranges[2 * i] = regions[i].start;
		ranges[2 * i + 1] = regions[i].end;
	}
	output_data(output, FT_PAGES, pid, ranges, nr * 2 * sizeof(*ranges));
}

/*
 * The end of the last mapping. A scan must not pass the end of user space, which
 * depends on the size of pages and the levels of page tables; x86-64's [vsyscall]
 * lies behind it.
 */
static uint64_t last_end(pid_t pid)
{
	uint64_t start, end, last = 0;
	size_t size = 0;
	char path[64], *line = NULL;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	maps = fopen(path, "re");
	if (!maps)
		return 0;
	while (getline(&line, &size, maps) > 0)
		if (sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) == 2 &&
		    !(start >> 63))
			last = end;
	free(line);
	fclose(maps);
	return last;
}

void zero_pages(pid_t pid, struct output *output)
{
	struct region regions[MOST_REGIONS];
	struct scan scan = {
		.size = sizeof(scan),
		.end = last_end(pid),
		.vec = (uintptr_t)regions,
		.vec_len = MOST_REGIONS,
		.category_mask = IS_PFNZERO,
		.return_mask = IS_PFNZERO,
	};
	char path[64];
	int fd, nr;

	snprintf(path, sizeof(path), "/proc/%d/pagemap", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	while ((nr = ioctl(fd, SCAN, &scan)) >= 0) {
		write_ranges(pid, output, regions, nr);
		scan.start = scan.walk_end;
		if (scan.start >= scan.end) {
			output_write(output, &(struct ft_data) {
				.header = ft_header(FT_PAGES, sizeof(struct ft_data)),
				.pid = pid,
			}, sizeof(struct ft_data));
			break;
		}
	}
	close(fd);
}
