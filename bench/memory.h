/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MEMORY_H
#define MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "run.h"

/*
 * The alignment of measured memory: it gives page tables of the same shape in
 * every run, wherever the address space begins.
 */
#define MEMORY_ALIGN	1073741824ul

/* A mapping that is a VMA of its own. */
struct memory {
	char *start;		/* the part in use, aligned as requested */
	size_t size;
	void *reserved;		/* what is unmapped at the end */
	size_t reserved_size;
};

/* The kernel's page size, bytes. */
size_t page_size(void);

/*
 * The bytes that this process can still fill without swapping: the kernel's
 * estimate of available memory, or less if a memory cgroup limits it.
 */
uint64_t memory_available(void);

/* Writes the path of this process's cgroup of version 2, "/" for the root. False: it has none. */
bool memory_cgroup(char *group, size_t size);

/*
 * Refuses a size that is no multiple of @multiple (called @what in the
 * sentence) or that this machine's memory cannot hold.
 */
enum status memory_check_size(const struct run *run, const char *param,
			      uint64_t multiple, const char *what);

/*
 * Maps @size bytes aligned to @align (a power of two): private, anonymous and
 * writable, or for the other one a file, shared and read-only.
 * Returns 0, or a negative errno.
 */
int memory_map(struct memory *memory, size_t size, size_t align);
int memory_map_file(struct memory *memory, size_t size, size_t align, int fd);
void memory_unmap(struct memory *memory);

/*
 * Checks what a touch left: @first in each page's first eight bytes, zeroes in
 * all others.
 */
enum status memory_check_contents(const struct run *run,
				  const struct memory *memory, uint64_t first);

/*
 * The sum in bytes of a field of /proc/self/smaps ("AnonHugePages") over the
 * VMAs that lie in [start, start + size). Returns -1 if it cannot be read.
 */
int64_t memory_smaps(const void *start, size_t size, const char *field);

/*
 * The number of the page frame (in pages of the kernel's size) behind a mapped
 * address. -1: nothing is mapped, or the kernel does not show it (it requires
 * CAP_SYS_ADMIN and CONFIG_PROC_PAGE_MONITOR).
 */
int64_t memory_frame(const void *address);

/* Why memory_frame() has just returned -1, and the remedy. */
#define MEMORY_FRAME_HIDDEN	"/proc/self/pagemap does not show page frames: run as root"

#endif /* MEMORY_H */
