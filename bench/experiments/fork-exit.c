// SPDX-License-Identifier: GPL-2.0
/*
 * A process with many zero pages forks, and the child ends: the kernel handles
 * the entry of each page twice, to copy it and to drop it.
 */
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch.h"
#include "memory.h"
#include "region.h"
#include "thp.h"
#include "touch.h"

/* 0, a negative errno, or the status of a child that failed. */
static int fork_and_wait(void)
{
	pid_t child = fork();
	int status;

	if (!child)
		_exit(0);
	if (child < 0 || waitpid(child, &status, 0) != child)
		return -errno;
	return status;
}

static enum status measure_memory(struct run *run, const struct memory *memory)
{
	const struct touch *touch = touch_find("load");
	int error;

	/*
	 * fork() copies no entries of a mapping that was only read. After one
	 * page was written, it copies the entries of all.
	 */
	memory->start[0] = 1;
	touch->pages(memory->start, memory->start + memory->size, page_size());

	error = fork_and_wait();	/* sets up what the first fork needs */
	if (!error) {
		region_begin(run, "fork-exit");
		marker_begin();
		error = fork_and_wait();
		marker_end();
		region_end(run);
	}
	if (error)
		return wrong(run, "fork: %s",
			     error < 0 ? strerror(-error) : "the child was killed");
	region_report(run);
	return STATUS_OK;
}

static enum status measure(struct run *run)
{
	struct memory memory;
	enum status status;
	int error;

	status = memory_check_size(run, "size", page_size(), "page");
	if (status)
		return status;
	error = memory_map(&memory, param_number(run, "size"), MEMORY_ALIGN);
	if (!error) {
		error = thp_advise(&memory, page_size());
		if (!error)
			status = measure_memory(run, &memory);
		memory_unmap(&memory);
	}
	if (error)
		return wrong(run, "mapping the memory: %s", strerror(-error));
	return status;
}

static const struct param params[] = {
	{
		.name = "size", .help = "bytes of memory behind zero pages",
		.type = PARAM_SIZE, .def = "67108864", .min = 4096,
	},
	{ }
};

static const struct metric metrics[] = {
	{ }
};

static const struct experiment fork_exit = {
	.name = "fork-exit",
	.summary = "fork and exit of a process with many zero pages",
	.detail =
"Maps private anonymous memory in base pages and loads from each, so that zero\n"
"pages are behind all but the first one, which is written: without it fork would\n"
"not copy the mapping's page tables. Then forks; the child ends at once. The\n"
"child's faults are not in page_faults.",
	.example = "--size 64M",
	.params = params,
	.metrics = metrics,
	.measure = measure,
};

EXPERIMENT(fork_exit);
