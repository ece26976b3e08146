// SPDX-License-Identifier: GPL-2.0
/*
 * Processes that touch a pool of shared memory which their parent has filled:
 * the faults that map cached pages, and the end of a process that has them or
 * the reclaim of pages that several have mapped.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch.h"
#include "memory.h"
#include "order.h"
#include "region.h"
#include "result.h"
#include "swap.h"
#include "thp.h"
#include "touch.h"

#define MAX_PROCESSES	64

/* What a process reports, in memory of its own. */
struct report {
	uint64_t faults, mapped;
};

struct pool {
	struct memory memory;
	const struct touch *touch;
	uint32_t *list, number;		/* of pages, in the order of the touches */
	/* what is measured; all but touch_all() follow it */
	bool (*measured)(const struct pool *pool, unsigned int processes);
	struct report *reports;
	int ready[2], go[2], end[2];	/* pipes; a byte is for one process */
};

static bool signal_one(const int *pipe)
{
	return write(pipe[1], "", 1) == 1;
}

static bool wait_for_one(const int *pipe)
{
	char byte;

	return read(pipe[0], &byte, 1) == 1;
}

/* One after the other. */
static bool touch_all(const struct pool *pool, unsigned int processes)
{
	while (processes--)
		if (!signal_one(pool->go) || !wait_for_one(pool->ready))
			return false;
	return true;
}

static bool end_all(const struct pool *pool, unsigned int processes)
{
	bool good = true;

	while (processes--) {
		int status;

		good &= signal_one(pool->end) && wait(&status) > 0 && !status;
	}
	return good;
}

/* Asks once for as many pages as the pool has. */
static bool reclaim_all(const struct pool *pool, unsigned int)
{
	return swap_reclaim(pool->memory.size);
}

static uint64_t touch_pages(const struct pool *pool, char *start, uint32_t number)
{
	const size_t page = page_size();
	struct rusage before, after;

	getrusage(RUSAGE_SELF, &before);
	for (uint32_t i = 0; i < number; i++) {
		char *at = start + pool->list[i] * page;

		pool->touch->pages(at, at + page, page);
	}
	getrusage(RUSAGE_SELF, &after);
	return after.ru_minflt - before.ru_minflt +
	       after.ru_majflt - before.ru_majflt;
}

static void count_mapped(const struct pool *pool, struct report *report)
{
	report->mapped = memory_smaps(pool->memory.start, pool->memory.size, "Rss") /
			 page_size();
}

/* All that it calls and reads before the pool is touched has been touched. */
static void process(const struct pool *pool, struct report *report)
{
	const size_t size = pool->memory.size;
	char *scratch = mmap(NULL, size, PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (scratch == MAP_FAILED)
		_exit(1);
	touch_pages(pool, scratch, 1);
	munmap(scratch, size);
	count_mapped(pool, report);
	if (!signal_one(pool->ready) || !wait_for_one(pool->go))
		_exit(1);
	report->faults = touch_pages(pool, pool->memory.start, pool->number);
	if (pool->measured == end_all)
		count_mapped(pool, report);
	if (!signal_one(pool->ready) || !wait_for_one(pool->end))
		_exit(1);
	if (pool->measured != end_all)
		count_mapped(pool, report);
	_exit(0);
}

static bool start(const struct pool *pool, unsigned int processes)
{
	for (unsigned int i = 0; i < processes; i++) {
		const pid_t child = fork();

		if (!child)
			process(pool, &pool->reports[i]);
		if (child < 0 || !wait_for_one(pool->ready))
			return false;
	}
	return true;
}

static enum status measure_processes(struct run *run, const struct pool *pool)
{
	const unsigned int processes = param_number(run, "processes");
	uint64_t faults = 0, mapped = 0;
	bool good = start(pool, processes) &&
		    (pool->measured == touch_all || touch_all(pool, processes));

	if (good) {
		region_begin(run, "shared");
		marker_begin();
		good = pool->measured(pool, processes);
		marker_end();
		region_end(run);
	}
	if (pool->measured != end_all && !end_all(pool, processes))
		good = false;
	if (!good && pool->measured == reclaim_all)
		return wrong(run, "not all was reclaimed: name a larger area by --swap");
	if (!good)
		return wrong(run, "a process failed: allow more memory and processes");
	region_report(run);
	for (unsigned int i = 0; i < processes; i++) {
		faults += pool->reports[i].faults;
		mapped += pool->reports[i].mapped;
	}
	result_add(run, "process_faults", faults);
	result_add(run, "mapped_pages", mapped);
	result_add(run, "touches", (uint64_t)processes * pool->number);
	return STATUS_OK;
}

/* Puts shared memory of --memory in the place of @memory. 0 or a negative errno. */
static int map_shared(struct run *run, struct memory *memory)
{
	const char *kind = param_text(run, "memory");
	int error = memory_map(memory, param_number(run, "size"), MEMORY_ALIGN);
	char *at = MAP_FAILED;

	if (error)
		return error;
	if (!strcmp(kind, "system-v")) {
		const int id = shmget(IPC_PRIVATE, memory->size, IPC_CREAT | 0600);

		if (id >= 0) {
			at = shmat(id, memory->start, SHM_REMAP);
			shmctl(id, IPC_RMID, NULL);
		}
	} else {
		const bool file = !strcmp(kind, "memfd");
		const int fd = file ? memfd_create("ftbench", MFD_CLOEXEC) : -1;

		if (!file || (fd >= 0 && !ftruncate(fd, memory->size)))
			at = mmap(memory->start, memory->size, PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_FIXED | (file ? 0 : MAP_ANONYMOUS), fd, 0);
		if (fd >= 0)
			close(fd);
	}
	if (at != MAP_FAILED)
		return 0;
	error = -errno;
	memory_unmap(memory);
	return error;
}

static enum status measure_pool(struct run *run, struct pool *pool)
{
	const struct touch *store = touch_find("store");
	const size_t page = page_size();
	const struct order *order = order_find(param_text(run, "order"));

	pool->list = malloc(pool->memory.size / page * sizeof(*pool->list));
	pool->reports = mmap(NULL, MAX_PROCESSES * sizeof(*pool->reports),
			     PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (!pool->list || pool->reports == MAP_FAILED ||
	    pipe(pool->ready) || pipe(pool->go) || pipe(pool->end))
		return wrong(run, "no memory or no pipes for the processes");
	pool->number = order->arrange(pool->list, pool->memory.size / page, order->number);
	if (!strcmp(param_text(run, "filled"), "yes"))
		store->pages(pool->memory.start, pool->memory.start + pool->memory.size, page);
	return measure_processes(run, pool);
}

static const char * const parts[] = { "touch", "exit", "reclaim", NULL };
static bool (* const measured[])(const struct pool *pool, unsigned int processes) = {
	touch_all, end_all, reclaim_all,
};

static enum status measure(struct run *run)
{
	const size_t bytes = thp_page_bytes(param_text(run, "page"));
	struct pool pool = { .ready = { -1, -1 }, .go = { -1, -1 }, .end = { -1, -1 } };
	const char *why, *swap = NULL;
	bool unavailable = false;
	enum status status;
	int error;

	status = memory_check_size(run, "size", ORDER_SLOT * page_size(), "64 pages");
	if (!status)
		status = thp_prepare_shmem(run, bytes, param_number(run, "set-thp"), &unavailable);
	if (status || unavailable)
		return status;
	if (order_find(param_text(run, "order"))->extra != NOTHING)
		return refuse(run, "--order %s is for touch-order: give one that only touches",
			      param_text(run, "order"));
	for (size_t i = 0; parts[i]; i++)
		if (!strcmp(param_text(run, "part"), parts[i]))
			pool.measured = measured[i];
	if (pool.measured == reclaim_all && !param_given(run, "swap"))
		return refuse(run, "--part reclaim writes the pool to an area: name one by --swap");
	error = map_shared(run, &pool.memory);
	if (!error)
		error = thp_advise(&pool.memory, bytes);
	if (error)
		return wrong(run, "mapping the memory: %s", strerror(-error));
	pool.touch = touch_find(param_text(run, "by"));
	why = swap_on(run, &swap);
	status = why ? refuse(run, "%s", why) : measure_pool(run, &pool);
	for (int i = 0; i < 2; i++) {
		close(pool.ready[i]);
		close(pool.go[i]);
		close(pool.end[i]);
	}
	free(pool.list);
	if (pool.reports && pool.reports != MAP_FAILED)
		munmap(pool.reports, MAX_PROCESSES * sizeof(*pool.reports));
	memory_unmap(&pool.memory);
	swap_off(swap);
	return status;
}

static const char * const touches[] = { "store", "load", "load-store", NULL };
static const char * const kinds[] = { "anonymous", "memfd", "system-v", NULL };
static const char * const answers[] = { "yes", "no", NULL };

static const struct param params[] = {
	{
		.name = "processes", .help = "that touch the pool, one after the other",
		.type = PARAM_COUNT, .def = "4", .min = 1, .max = MAX_PROCESSES,
	}, {
		.name = "by", .help = "what touches",
		.type = PARAM_CHOICE, .words = touches, .def = "store",
	}, {
		.name = "memory", .help = "what the pool is",
		.type = PARAM_CHOICE, .words = kinds, .def = "anonymous",
	}, {
		.name = "page", .help = "size of its folios",
		.type = PARAM_CHOICE, .choices = thp_page, .def = "4k",
	}, {
		.name = "order", .help = "of the pages",
		.type = PARAM_CHOICE, .choices = order_name, .def = "up",
	}, {
		.name = "part",
		.help = "measured: the touches, the end of the processes, or reclaim (root)",
		.type = PARAM_CHOICE, .words = parts, .def = "touch",
	}, {
		.name = "filled", .help = "whether all of it is written first",
		.type = PARAM_CHOICE, .words = answers, .def = "yes",
	}, {
		.name = "size", .help = "bytes of the pool",
		.type = PARAM_SIZE, .def = "16777216", .min = 4096,
	}, {
		.name = "set-thp", .type = PARAM_FLAG, .option = true,
		.help = "write the huge page policy that --page needs (root)",
	},
	SWAP_PARAM,
	{ }
};

static const struct metric metrics[] = {
	{ "process_faults", "faults", "of the processes in the pool" },
	{ "mapped_pages", "pages", "of the pool that the processes have mapped in the end" },
	{ "touches", "touches", "of all processes" },
	{ }
};

static const struct experiment shared = {
	.name = "shared",
	.summary = "processes touch shared memory that another one has filled",
	.detail =
"Maps shared memory, writes all of it if --filled, and forks. Each process touches its pages in the\n"
"order that --order names (see touch-order), one process after the other; none of them\n"
"has mapped any before. Then they end. --part says which of the two is measured, or\n"
"else what memory.reclaim of the cgroup does for as many bytes between the two.",
	.example = "--processes 4 --by store --order up --size 16M",
	.params = params,
	.metrics = metrics,
	.measure = measure,
};

EXPERIMENT(shared);
