// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory.h"

#define CHECK_STEP	64	/* bytes: checks a word of each cache line */

/* Documentation/admin-guide/mm/pagemap.rst */
#define PRESENT		0x8000000000000000ull
#define FRAME_MASK	0x007fffffffffffffull

size_t page_size(void)
{
	return sysconf(_SC_PAGESIZE);
}

/* The number in a file that holds one; UINT64_MAX for "max" or no file. */
static uint64_t file_number(const char *path)
{
	FILE *file = fopen(path, "re");
	uint64_t number = UINT64_MAX;

	if (!file)
		return UINT64_MAX;
	if (fscanf(file, "%lu", &number) != 1)
		number = UINT64_MAX;
	fclose(file);
	return number;
}

/* The bytes of page cache in a cgroup, which the kernel can reclaim. */
static uint64_t cgroup_file_bytes(const char *group)
{
	uint64_t bytes = 0;
	char path[4352];
	char line[128];
	FILE *file;

	snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.stat", group);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "file %lu", &bytes) == 1)
			break;
	if (file)
		fclose(file);
	return bytes;
}

/* The bytes left below the limit of one cgroup; UINT64_MAX: no limit. */
static uint64_t cgroup_available(const char *group)
{
	char path[4352];
	uint64_t limit, used;

	snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.max", group);
	limit = file_number(path);
	if (limit == UINT64_MAX)
		return UINT64_MAX;
	snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.current", group);
	used = file_number(path);
	limit += cgroup_file_bytes(group);
	return used < limit ? limit - used : 0;
}

bool memory_cgroup(char *group, size_t size)
{
	FILE *file = fopen("/proc/self/cgroup", "re");
	bool found = false;
	char line[4096];

	while (!found && file && fgets(line, sizeof(line), file)) {
		found = !strncmp(line, "0::", strlen("0::"));
		line[strcspn(line, "\n")] = '\0';
		snprintf(group, size, "%s", line + strlen("0::"));
	}
	if (file)
		fclose(file);
	return found;
}

/* The fewest bytes left in this process's cgroup and its ancestors. */
static uint64_t cgroups_available(void)
{
	uint64_t least = UINT64_MAX;
	char group[4096], *slash;

	if (!memory_cgroup(group, sizeof(group)))
		return least;
	while ((slash = strrchr(group, '/'))) {
		uint64_t here = cgroup_available(group);

		if (here < least)
			least = here;
		*slash = '\0';
	}
	return least;
}

uint64_t memory_available(void)
{
	FILE *file = fopen("/proc/meminfo", "re");
	uint64_t available = UINT64_MAX, cgroup = cgroups_available();
	char line[256];

	while (file && fgets(line, sizeof(line), file)) {
		uint64_t kib;

		if (sscanf(line, "MemAvailable: %lu kB", &kib) == 1)
			available = kib * 1024;
	}
	if (file)
		fclose(file);
	/* Without /proc: an upper bound, all physical memory. */
	if (available == UINT64_MAX)
		available = (uint64_t)sysconf(_SC_PHYS_PAGES) * page_size();
	return cgroup < available ? cgroup : available;
}

enum status memory_check_size(const struct run *run, const char *param,
			      uint64_t multiple, const char *what)
{
	uint64_t size = param_number(run, param);
	uint64_t available = memory_available();

	if (!size || size % multiple)
		return refuse(run, "--%s %lu is not a multiple of the %s (%lu bytes): give %lu",
			      param, size, what, multiple,
			      (size / multiple + 1) * multiple);
	if (size > available)
		return refuse(run,
			      "--%s %lu is more than this machine has available: give at most %lu",
			      param, size, available / multiple * multiple);
	return STATUS_OK;
}

static int map_aligned(struct memory *memory, size_t size, size_t align,
		       int prot, int flags, int fd)
{
	uintptr_t start;

	/*
	 * The reservation around the mapping keeps the kernel from merging it
	 * with a neighbour, so that smaps shows this mapping alone.
	 */
	memory->reserved_size = size + 2 * align;
	memory->reserved = mmap(NULL, memory->reserved_size, PROT_NONE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
				-1, 0);
	if (memory->reserved == MAP_FAILED)
		return -errno;
	start = ((uintptr_t)memory->reserved + align) & ~(uintptr_t)(align - 1);
	memory->size = size;
	memory->start = mmap((void *)start, size, prot, flags | MAP_FIXED, fd,
			     0);
	if (memory->start == MAP_FAILED) {
		int error = -errno;

		munmap(memory->reserved, memory->reserved_size);
		return error;
	}
	return 0;
}

int memory_map(struct memory *memory, size_t size, size_t align)
{
	return map_aligned(memory, size, align, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

int memory_map_file(struct memory *memory, size_t size, size_t align, int fd)
{
	return map_aligned(memory, size, align, PROT_READ, MAP_SHARED, fd);
}

void memory_unmap(struct memory *memory)
{
	munmap(memory->reserved, memory->reserved_size);
}

enum status memory_check_contents(const struct run *run,
				  const struct memory *memory, uint64_t first)
{
	for (size_t at = 0; at < memory->size; at += CHECK_STEP) {
		uint64_t want = at % page_size() ? 0 : first;
		uint64_t got = *(const uint64_t *)(memory->start + at);

		if (got != want)
			return wrong(run, "the memory at %zu holds %#lx, not %#lx",
				     at, got, want);
	}
	return STATUS_OK;
}

int64_t memory_smaps(const void *start, size_t size, const char *field)
{
	uintptr_t first = (uintptr_t)start, last = first + size;
	FILE *file = fopen("/proc/self/smaps", "re");
	size_t len = strlen(field);
	int64_t sum = -1;
	bool inside = false;
	char line[512];

	while (file && fgets(line, sizeof(line), file)) {
		uintptr_t a, b;

		if (sscanf(line, "%lx-%lx ", &a, &b) == 2) {
			inside = a >= first && b <= last;
		} else if (inside && !strncmp(line, field, len) &&
			   line[len] == ':') {
			if (sum < 0)
				sum = 0;
			sum += strtoll(line + len + 1, NULL, 10) * 1024;
		}
	}
	if (file)
		fclose(file);
	return sum;
}

int64_t memory_frame(const void *address)
{
	off_t at = (uintptr_t)address / page_size() * sizeof(uint64_t);
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t entry = 0;
	ssize_t got;

	if (fd < 0)
		return -1;
	got = pread(fd, &entry, sizeof(entry), at);
	close(fd);
	/* Without the permission the kernel shows frame 0. */
	if (got != sizeof(entry) || !(entry & PRESENT) || !(entry & FRAME_MASK))
		return -1;
	return entry & FRAME_MASK;
}
