// SPDX-License-Identifier: GPL-2.0
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "anon.h"
#include "memory.h"

/* Documentation/admin-guide/mm/pagemap.rst; the second is also set in shmem. */
#define PRESENT		0x8000000000000000ull
#define OF_FILE		0x2000000000000000ull
#define ENTRIES		512	/* read at once */

/* The files of one task. */
struct view {
	int pagemap, mem;
	FILE *smaps;
};

static bool is_zero(const char *bytes, size_t size)
{
	return !bytes[0] && !memcmp(bytes, bytes + 1, size - 1);
}

/*
 * Counts [start, end) of a task, which has @anonymous resident pages there, as
 * smaps says. Zero pages are neither these nor of a file: subtracting them needs
 * no permission to see page frames, and no knowledge of how many there are.
 */
static bool count(struct anon *anon, const struct view *view,
		  uintptr_t start, uintptr_t end, uint64_t anonymous)
{
	const size_t size = page_size();
	uint64_t entries[ENTRIES], mapped = 0, zero = 0;
	size_t nr;

	for (; start < end; start += nr * size) {
		nr = (end - start) / size < ENTRIES ? (end - start) / size : ENTRIES;
		if (pread(view->pagemap, entries, nr * sizeof(*entries),
			  start / size * sizeof(*entries)) !=
		    (ssize_t)(nr * sizeof(*entries)))
			return false;
		for (size_t i = 0; i < nr; i++) {
			if ((entries[i] & (PRESENT | OF_FILE)) != PRESENT)
				continue;
			if (pread(view->mem, anon->page, size,
				  start + i * size) != (ssize_t)size)
				return false;
			mapped++;
			zero += is_zero(anon->page, size);
		}
	}
	if (mapped < anonymous || zero < mapped - anonymous)
		return false;
	anon->pages += anonymous;
	anon->zero_pages += zero - (mapped - anonymous);
	return true;
}

static bool count_all(struct anon *anon, const struct view *view)
{
	uintptr_t start = 0, end = 0, first;
	uint64_t kilobytes;
	char line[4352];

	if (view->pagemap < 0 || view->mem < 0 || !view->smaps)
		return false;
	while (fgets(line, sizeof(line), view->smaps)) {
		/* Some fields begin with a hexadecimal digit, such as this one. */
		if (sscanf(line, "%lx-%lx ", &first, &end) == 2)
			start = first;
		if (sscanf(line, "Anonymous: %lu kB", &kilobytes) != 1 || !kilobytes)
			continue;
		if (!count(anon, view, start, end,
			   kilobytes * 1024 / page_size()))
			return false;
	}
	return true;
}

static int open_file(pid_t id, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", id, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static void look(struct follower *follower, pid_t id)
{
	struct anon *anon = (struct anon *)follower;
	const int smaps = open_file(id, "smaps");
	struct view view = {
		.pagemap = open_file(id, "pagemap"), .mem = open_file(id, "mem"),
		.smaps = smaps < 0 ? NULL : fdopen(smaps, "r"),
	};

	if (!count_all(anon, &view))
		follower->why =
			"smaps, pagemap and mem of /proc/PID disagree (CONFIG_PROC_PAGE_MONITOR)";
	if (view.smaps)
		fclose(view.smaps);
	if (view.pagemap >= 0)
		close(view.pagemap);
	if (view.mem >= 0)
		close(view.mem);
}

void anon_init(struct anon *anon)
{
	*anon = (struct anon){ .follower.leaves = look, .page = malloc(page_size()) };
	if (!anon->page)
		abort();
}
