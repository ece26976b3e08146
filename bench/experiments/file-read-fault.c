// SPDX-License-Identifier: GPL-2.0
/*
 * Loads through a read-only mapping of a file: faults that no write follows.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "arch.h"
#include "datafile.h"
#include "memory.h"
#include "region.h"
#include "touch.h"

#define CHUNK		1048576ul	/* bytes read at once */

static const char * const caches[] = { "cold", "warm", NULL };

/* Pages of the mapping that are in the page cache; -1 with errno on failure. */
static int64_t resident_pages(char *map, uint64_t size)
{
	size_t pages = size / page_size();
	unsigned char *vec = malloc(pages);
	int64_t resident = 0;

	if (!vec || mincore(map, size, vec)) {
		free(vec);
		return -1;
	}
	for (size_t i = 0; i < pages; i++)
		resident += vec[i] & 1;
	free(vec);
	return resident;
}

/* Only with permission, and only if the file's own pages stay cached. */
static void drop_all_caches(void)
{
	int fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	sync();
	/* The pages are counted next, which shows whether this worked. */
	dprintf(fd, "1\n");
	close(fd);
}

static enum status make_cold(const struct run *run, int fd, char *map,
			     uint64_t size)
{
	int64_t resident = -1;

	/* The first call misses pages on their way to the LRU. */
	for (int i = 0; i < 3 && resident; i++) {
		fsync(fd);
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		if (i == 2)
			drop_all_caches();
		resident = resident_pages(map, size);
	}
	if (resident < 0)
		return wrong(run, "mincore: %s", strerror(errno));
	if (resident)
		return wrong(run,
			     "the cache is not cold, %ld pages of the file stay in it: name a file of this user's on a disk, not on tmpfs",
			     resident);
	return STATUS_OK;
}

static enum status make_warm(const struct run *run, int fd, char *map,
			     uint64_t size)
{
	char *chunk = malloc(CHUNK);
	int64_t resident;
	ssize_t got = 1;

	if (!chunk)
		return wrong(run, "no memory for a buffer");
	for (uint64_t at = 0; at < size && got > 0; at += got)
		got = pread(fd, chunk, CHUNK, at);
	free(chunk);
	resident = got < 0 ? -1 : resident_pages(map, size);
	if (resident < 0)
		return wrong(run, "reading the file: %s", strerror(errno));
	if ((uint64_t)resident < size / page_size())
		return wrong(run,
			     "the cache is not warm, only %ld pages of the file stay in it: give a smaller --size",
			     resident);
	return STATUS_OK;
}

static enum status measure_map(struct run *run, int fd, char *map, uint64_t size)
{
	bool cold = !strcmp(param_text(run, "cache"), "cold");
	const struct touch *touch = touch_find("load");
	enum status status;

	status = cold ? make_cold(run, fd, map, size) :
			make_warm(run, fd, map, size);
	if (status)
		return status;

	region_timeline(run, map, size, false);
	/* The first call of the loop, on memory that is mapped. */
	touch->pages((char *)run, (char *)run + 1, page_size());
	region_begin(run, "file-read-fault");
	marker_begin();
	touch->pages(map, map + size, page_size());
	marker_end();
	region_end(run);
	region_report(run);

	for (uint64_t at = 0; at < size; at += WORD_STEP) {
		uint64_t got = *(const uint64_t *)(map + at);

		if (got != datafile_word(at))
			return wrong(run,
				     "the file at %lu reads as %#lx, not %#lx",
				     at, got, datafile_word(at));
	}
	return STATUS_OK;
}

static enum status measure(struct run *run)
{
	uint64_t size = param_number(run, "size");
	enum status status;
	struct memory memory;
	int fd = -1, error;

	status = memory_check_size(run, "size", page_size(), "page");
	if (status)
		return status;
	status = param_given(run, "file") ?
		 datafile_open(run, param_text(run, "file"), size, &fd) :
		 datafile_open_scratch(run, "/var/tmp", "name one with --file",
				       size, &fd);
	if (status)
		return status;
	error = memory_map_file(&memory, size, MEMORY_ALIGN, fd);
	if (error) {
		status = wrong(run, "mapping the file: %s", strerror(-error));
	} else {
		status = measure_map(run, fd, memory.start, size);
		memory_unmap(&memory);
	}
	close(fd);
	return status;
}

static const struct param params[] = {
	{
		.name = "cache", .help = "state of the page cache",
		.type = PARAM_CHOICE, .words = caches, .def = "cold",
	}, {
		.name = "size", .help = "bytes of the file",
		.type = PARAM_SIZE, .def = "1073741824", .min = 4096,
	}, {
		.name = "file", .type = PARAM_PATH, .option = true,
		.help = "the file, created if missing (without: one in /var/tmp that goes away)",
	},
	TIMELINE_PARAM,
	{ }
};

static const struct metric metrics[] = {
	{ }
};

static const struct experiment file_read_fault = {
	.name = "file-read-fault",
	.summary = "loads through a read-only mapping of a file, cache cold or warm",
	.detail =
"Maps a file of real contents, shared and read-only, and loads from each page\n"
"once, in order of address. For cold the file's pages are dropped from the page\n"
"cache (as root all files' are, should that not do), and that none is left is\n"
"checked; for warm that all are there. The contents are checked afterwards.",
	.example = "--cache cold --size 1G --file /mnt/ftbench.file",
	.params = params,
	.metrics = metrics,
	.measure = measure,
};

EXPERIMENT(file_read_fault);
