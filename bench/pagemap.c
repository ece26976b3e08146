// SPDX-License-Identifier: GPL-2.0
#include <fcntl.h>
#include <unistd.h>

#include "memory.h"
#include "pagemap.h"

/* Documentation/admin-guide/mm/pagemap.rst */
#define PRESENT		0x8000000000000000ull
#define FRAME_MASK	0x007fffffffffffffull

int64_t pagemap_frame(const void *address)
{
	off_t at = (uintptr_t)address / page_size() * sizeof(uint64_t);
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t entry = 0;
	ssize_t got;

	if (fd < 0)
		return -1;
	got = pread(fd, &entry, sizeof(entry), at);
	close(fd);
	/* Frame 0 is what those see who may not see frames. */
	if (got != sizeof(entry) || !(entry & PRESENT) || !(entry & FRAME_MASK))
		return -1;
	return entry & FRAME_MASK;
}
