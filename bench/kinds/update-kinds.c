// SPDX-License-Identifier: GPL-2.0
/*
 * What compilers make of updates of fresh memory (see kinds.c): how many pages
 * take two faults, and how many are allocated in vain.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "arch.h"
#include "kinds/kinds.h"
#include "loops.h"
#include "memory.h"
#include "region.h"
#include "result.h"
#include "thp.h"

/* Documentation/admin-guide/mm/pagemap.rst. A zero page is never exclusive. */
#define PAGEMAP_PRESENT		0x8000000000000000ull
#define PAGEMAP_EXCLUSIVE	0x0100000000000000ull

/* A build may lack any of them: the lists are the Makefile's and kinds.c's. */
static const char * const names[] = {
	"increment", "histogram", "bitmap", "hash-table", "sparse", "union-find",
	"bss-counters", "atomic-counters", "atomic-claim", NULL
};

static const char * const compilers[] = { "gcc", "clang", NULL };
static const char * const marches[] = { "armv8-a", "armv8-a+lse", NULL };

/* Pages of a mapping when the region ended. */
struct pages {
	uint64_t allocated;
	uint64_t in_vain;	/* of these: nothing was written */
	uint64_t zero;		/* the zero page is mapped */
};

static const struct kind *find_kind(const struct run *run)
{
	const struct build * const *build;
	const struct kind *kind;

	for (build = __start_ft_builds; build != __stop_ft_builds; build++) {
		if (strcmp((*build)->compiler, param_text(run, "compiler")) ||
		    strcmp((*build)->march, param_text(run, "march")))
			continue;
		for (kind = (*build)->kinds; kind->name; kind++)
			if (!strcmp(kind->name, param_text(run, "kind")))
				return kind;
	}
	return NULL;
}

/*
 * Maps the program's code. A first call would do that, too, but
 * a kernel that learns from faults must not see the kind before it is measured.
 */
static void touch_program(void)
{
	for (const char *at = __executable_start; at < etext; at += page_size())
		load(at);
}

static bool is_zero(const char *page)
{
	const uint64_t *word = (const uint64_t *)page;
	size_t i = 0;

	while (i < page_size() / sizeof(*word) && !word[i])
		i++;
	return i == page_size() / sizeof(*word);
}

/* Reads no page that is not allocated. 0 or -errno. */
static int count_pages(const struct memory *memory, struct pages *pages)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	int error = fd < 0 ? -errno : 0;

	for (size_t at = 0; !error && at < memory->size; at += page_size()) {
		const char *page = memory->start + at;
		uint64_t entry;

		if (pread(fd, &entry, sizeof(entry), (uintptr_t)page / page_size() *
			  sizeof(entry)) != sizeof(entry)) {
			error = -EIO;
		} else if (entry & PAGEMAP_PRESENT && entry & PAGEMAP_EXCLUSIVE) {
			pages->allocated++;
			pages->in_vain += is_zero(page);
		} else if (entry & PAGEMAP_PRESENT) {
			pages->zero++;
		}
	}
	if (fd >= 0)
		close(fd);
	return error;
}

/* Of what was returned and of all that the memory holds. */
static uint32_t checksum(const struct memory *memory, uint64_t sum)
{
	const uint64_t *word = (const uint64_t *)memory->start;

	for (size_t i = 0; i < memory->size / sizeof(*word); i++)
		sum = sum * 31 + word[i];
	return sum ^ sum >> 32;
}

static enum status measure_kind(struct run *run, const struct kind *kind,
				const struct memory *memory)
{
	struct pages pages = { 0 };
	struct rusage *begin = &run->region->begin.usage;
	struct rusage *end = &run->region->end.usage;
	uint64_t value, faults;
	int error;

	touch_program();
	region_begin(run, "update-kinds");
	marker_begin();
	value = kind->update(memory->start, memory->size);
	marker_end();
	region_end(run);
	region_report(run);
	faults = end->ru_minflt - begin->ru_minflt +
		 end->ru_majflt - begin->ru_majflt;

	error = count_pages(memory, &pages);
	if (error)
		return wrong(run, "/proc/self/pagemap: %s", strerror(-error));
	if (faults < pages.allocated + pages.zero)
		return wrong(run, "%lu faults mapped %lu pages", faults,
			     pages.allocated + pages.zero);
	result_add(run, "doubles", faults - pages.allocated - pages.zero);
	result_add(run, "resident_pages", pages.allocated);
	result_add(run, "pages_in_vain", pages.in_vain);
	result_add(run, "zero_pages", pages.zero);
	result_add(run, "checksum", checksum(memory, value));
	return STATUS_OK;
}

static enum status measure(struct run *run)
{
	uint64_t size = param_number(run, "size");
	const struct kind *kind = find_kind(run);
	struct memory memory = { .size = size };
	const char *lacks = loop_unavailable(touch_ldadd);
	enum status status;
	int error = 0;

	if (lacks && !strcmp(param_text(run, "march"), "armv8-a+lse"))
		return result_unavailable(run, "%s", lacks);
	if (!kind)
		return refuse(run, "this ftbench was linked without it: run `make ftbench-kinds`");
	status = memory_check_size(run, "size", page_size(), "page");
	if (status)
		return status;
	if (kind->bss)
		memory.start = kind->bss;
	else
		error = memory_map(&memory, size, MEMORY_ALIGN);
	if (error)
		return refuse(run, "--size %lu cannot be mapped (%s): give a smaller one",
			      size, strerror(-error));
	error = thp_advise(&memory, page_size());
	if (error)
		status = wrong(run, "madvise: %s", strerror(-error));
	else
		status = measure_kind(run, kind, &memory);
	if (!kind->bss)
		memory_unmap(&memory);
	return status;
}

static const struct param params[] = {
	{
		.name = "kind", .help = "what updates the memory",
		.type = PARAM_CHOICE, .words = names, .def = "histogram",
	}, {
		.name = "compiler", .help = "what compiled it",
		.type = PARAM_CHOICE, .words = compilers, .def = "gcc",
	}, {
		.name = "march", .help = "and for which CPU, on arm64",
		.type = PARAM_CHOICE, .words = marches, .def = "armv8-a",
	}, {
		.name = "size", .help = "bytes of memory",
		.type = PARAM_SIZE, .def = "16777216", .min = 4096, .max = BSS_SIZE,
	},
	{ }
};

static const struct metric metrics[] = {
	{ "doubles", "faults", "faults beyond the first of a page" },
	{ "resident_pages", "pages", "pages allocated when the update ended" },
	{ "pages_in_vain", "pages", "of these, those that hold only zeroes" },
	{ "zero_pages", "pages", "pages that were read and never allocated" },
	{ "checksum", "number", "of the memory, the same for each build" },
	{ }
};

static const struct experiment update_kinds = {
	.name = "update-kinds",
	.summary = "updates of fresh memory as compilers make them",
	.detail =
"Updates memory that was never touched, in base pages: counters in order, at random\n"
"or in .bss, a bitmap, a hash table, an array that is mostly read, a union-find, and\n"
"C11 atomics. kinds/kinds.c has the loops, compiled by gcc and clang. No update\n"
"writes a zero, so a page that holds only zeroes was allocated in vain.",
	.example = "--kind histogram --compiler clang",
	.params = params,
	.metrics = metrics,
	.measure = measure,
};

EXPERIMENT(update_kinds);
