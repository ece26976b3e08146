// SPDX-License-Identifier: GPL-2.0
/*
 * Faults that gain nothing from a feature about the first touch of anonymous
 * memory: of pages that are there, swapped out, or of files, reads by text that
 * the kernel cannot read, and reads by an instruction that came before writes.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch.h"
#include "datafile.h"
#include "memory.h"
#include "region.h"
#include "result.h"
#include "swap.h"
#include "thp.h"
#include "touch.h"

struct area {
	struct memory memory;
	int fd;			/* of the file behind it, or -1 */
	const char *swap;	/* the area that is in use, or NULL */
	pid_t child;
};

/* One way to get memory whose pages fault when @touch meets them. */
struct kind {
	const char *name, *touch;
	enum { WRITTEN, UNTOUCHED, FILE_PAGES } memory;
	/* Returns NULL, or why this machine cannot do it. */
	const char *(*prepare)(struct run *run, struct area *area);
};

static const char *make_old(struct run *run, struct area *area)
{
	int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
	bool written = fd >= 0 && write(fd, "1", 1) == 1;

	(void)run;
	(void)area;
	if (fd >= 0)
		close(fd);
	return written ? NULL : "no /proc/self/clear_refs (CONFIG_PROC_PAGE_MONITOR)";
}

static const char *share_with_child(struct run *run, struct area *area)
{
	(void)run;
	area->child = fork();
	if (!area->child) {
		pause();
		_exit(0);
	}
	return area->child < 0 ? "fork failed" : NULL;
}

static const char *swap_out(struct run *run, struct area *area)
{
	const char *why = swap_on(run, &area->swap);

	return why ? why : swap_out_memory(&area->memory);
}

/* At most, in bytes, of the loops that touch. They read nothing of their text. */
#define LOOP_SIZE	64

static const char *hide_text(struct run *run, struct area *area)
{
	uintptr_t loop = (uintptr_t)touch_find("load")->pages;
	uintptr_t first = loop & -page_size();
	uintptr_t last = (loop + LOOP_SIZE) & -page_size();

	(void)run;
	(void)area;
	if (mprotect((void *)first, last - first + page_size(), PROT_EXEC))
		return "the text cannot be made execute-only";
	return NULL;
}

/* What a kernel that learns may have learned at most, pages at a time */
#define LESSONS		64

static const char *teach_writes(struct run *run, struct area *area)
{
	const struct touch *touch = touch_find("load");
	const size_t page = page_size();
	struct memory memory;

	(void)run;
	(void)area;
	if (memory_map(&memory, LESSONS * page, MEMORY_ALIGN) ||
	    thp_advise(&memory, page))
		return "no memory to learn from";
	for (char *at = memory.start; at < memory.start + memory.size; at += page) {
		touch->pages(at, at + 1, page);
		*at = 1;
	}
	memory_unmap(&memory);
	return NULL;
}

static const char *nothing(struct run *run, struct area *area)
{
	(void)run;
	(void)area;
	return NULL;
}

static const struct kind kinds[] = {
	{ "access-flag", "load", WRITTEN, make_old },
	{ "cow-after-fork", "store", WRITTEN, share_with_child },
	{ "execute-only", "load", UNTOUCHED, hide_text },
	{ "read-after-updates", "load", UNTOUCHED, teach_writes },
	{ "swap-in", "load", WRITTEN, swap_out },
	{ "writable-file", "load", FILE_PAGES, nothing },
	{ "writable-shmem", "load", FILE_PAGES, nothing },
};

static const char *kind_name(size_t place)
{
	return place < ARRAY_SIZE(kinds) ? kinds[place].name : NULL;
}

static const struct kind *requested_kind(const struct run *run)
{
	const struct kind *kind = kinds;

	while (strcmp(kind->name, param_text(run, "kind")))
		kind++;
	return kind;
}

/* Pages of files are there, but not in this mapping. */
static enum status map_area(struct run *run, const struct kind *kind,
			    struct area *area, uint64_t size)
{
	const bool file = kind->memory == FILE_PAGES;
	const size_t page = page_size();
	enum status status = STATUS_OK;
	int error;

	if (file && !strcmp(kind->name, "writable-shmem")) {
		area->fd = memfd_create("ftbench", MFD_CLOEXEC);
		if (area->fd < 0 || ftruncate(area->fd, size) ||
		    fallocate(area->fd, 0, 0, size))
			return wrong(run, "shared memory: %s", strerror(errno));
	} else if (file) {
		status = datafile_open_scratch(run, param_text(run, "dir"),
					       "name another folder with --dir",
					       size, &area->fd);
	}
	if (status)
		return status;
	error = memory_map(&area->memory, size, MEMORY_ALIGN);
	if (!error && file &&
	    mmap(area->memory.start, size, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_FIXED, area->fd, 0) == MAP_FAILED)
		error = -errno;
	if (!error)
		error = thp_advise(&area->memory, page);
	if (error)
		return wrong(run, "mapping the memory: %s", strerror(-error));
	for (size_t at = 0; kind->memory == WRITTEN && at < size; at += page)
		area->memory.start[at] = 1;
	return STATUS_OK;
}

static enum status measure_area(struct run *run, const struct kind *kind,
				struct area *area)
{
	const struct touch *touch = touch_find(kind->touch);
	const struct memory *memory = &area->memory;
	const char *why = kind->prepare(run, area);
	uint64_t word;

	if (why)
		return result_unavailable(run, "%s", why);
	/* The first call of the loop faults on its own text, and may store. */
	touch->pages((char *)&word, (char *)&word + 1, page_size());
	region_begin(run, "other-faults");
	marker_begin();
	touch->pages(memory->start, memory->start + memory->size, page_size());
	marker_end();
	region_end(run);
	region_report(run);
	return STATUS_OK;
}

static enum status measure(struct run *run)
{
	const struct kind *kind = requested_kind(run);
	uint64_t size = param_number(run, "size");
	struct area area = { .fd = -1 };
	enum status status;

	status = memory_check_size(run, "size", page_size(), "page");
	if (!status)
		status = map_area(run, kind, &area, size);
	if (!status)
		status = measure_area(run, kind, &area);
	if (area.child > 0) {
		kill(area.child, SIGKILL);
		waitpid(area.child, NULL, 0);
	}
	if (area.memory.start)
		memory_unmap(&area.memory);
	swap_off(area.swap);
	if (area.fd >= 0)
		close(area.fd);
	return status;
}

static const struct param params[] = {
	{
		.name = "kind", .help = "of fault",
		.type = PARAM_CHOICE, .choices = kind_name, .def = "access-flag",
	}, {
		.name = "size", .help = "bytes of memory",
		.type = PARAM_SIZE, .def = "67108864", .min = 4096,
	}, {
		.name = "dir", .help = "folder for the file of writable-file",
		.type = PARAM_PATH, .option = true, .def = "/var/tmp",
	},
	SWAP_PARAM,
	{ }
};

static const struct metric metrics[] = {
	{ }
};

static const struct experiment other_faults = {
	.name = "other-faults",
	.summary = "faults that gain nothing: of pages that are there, or of files",
	.detail =
"Touches each page of a mapping once, in order of address. access-flag: loads\n"
"from old pages, which fault on CPUs without hardware access flag only.\n"
"cow-after-fork: stores to pages that a child shares. execute-only: loads from\n"
"untouched pages, by text that may not be read, where the CPU can do that.\n"
"read-after-updates: loads from untouched pages, by an instruction that read 64\n"
"pages before they were written. swap-in: loads from pages that are swapped out.\n"
"writable-file and writable-shmem: loads through a shared and writable mapping of\n"
"pages that are cached.",
	.example = "--kind cow-after-fork --size 64M",
	.params = params,
	.metrics = metrics,
	.measure = measure,
};

EXPERIMENT(other_faults);
