// SPDX-License-Identifier: GPL-2.0
/*
 * The first touch of anonymous memory by one kind of instruction.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cpus.h"
#include "hugepage.h"
#include "memory.h"
#include "region.h"
#include "result.h"
#include "share.h"
#include "thp.h"
#include "touch.h"

#define MAX_THREADS	1024

/* After the last size. */
static const char *page_kind(size_t place)
{
	if (thp_page(place) || !thp_page(place - 1))
		return thp_page(place);
	return "hugetlb";
}

static bool is_hugetlb(const struct run *run)
{
	return !strcmp(param_text(run, "page"), "hugetlb");
}

/* Compares the kernel's page sizes with the requested ones. */
static enum status report_pages(struct run *run, const struct memory *memory,
				size_t page)
{
	int64_t huge = memory_smaps(memory->start, memory->size,
				    "AnonHugePages");

	if (huge < 0)
		result_absent(run, "anon_huge_bytes",
			      "no AnonHugePages in /proc/self/smaps (CONFIG_PROC_PAGE_MONITOR)");
	else
		result_add(run, "anon_huge_bytes", huge);
	if (huge > 0 && page == page_size())
		return wrong(run,
			     "%ld bytes are in huge pages, though base pages were asked for",
			     huge);
	return STATUS_OK;
}

struct folio_stat {
	const char *metric, *file;
	int64_t before;
};

static void folio_stats_take(struct folio_stat *stats, size_t page)
{
	for (; stats->metric; stats++)
		stats->before = thp_stat(page, stats->file);
}

static void folio_stats_report(struct run *run, const struct folio_stat *stats,
			       size_t page)
{
	for (; stats->metric; stats++) {
		if (stats->before < 0)
			result_absent(run, stats->metric,
				      "the kernel has no statistics for pages of %zu KiB",
				      page / 1024);
		else
			result_add(run, stats->metric,
				   thp_stat(page, stats->file) - stats->before);
	}
}

static enum status measure_shares(struct run *run, const struct memory *memory,
				  struct share *shares, size_t page)
{
	unsigned int threads = param_number(run, "threads");
	struct folio_stat stats[] = {
		{ .metric = "folio_fault_alloc", .file = "anon_fault_alloc" },
		{ .metric = "folio_fault_fallback", .file = "anon_fault_fallback" },
		{ }
	};
	const struct touch *touch = shares->touch;
	enum status status;

	shares_divide(shares, threads, param_number(run, "cpus"), memory, page);
	folio_stats_take(stats, page);
	status = shares_touch(run, shares, threads);
	if (status)
		return status;

	for (unsigned int i = 0; i < threads; i++) {
		if (shares[i].error == EINVAL)
			return result_unavailable(run,
						  "this kernel has no MADV_POPULATE_WRITE (5.14 or later has)");
		if (shares[i].error)
			return wrong(run, "MADV_POPULATE_WRITE: %s",
				     strerror(shares[i].error));
	}
	region_report(run);
	folio_stats_report(run, stats, page);
	status = report_pages(run, memory, page);
	if (status)
		return status;
	return memory_check_contents(run, memory, touch ? touch->leaves : 0);
}

static enum status measure_memory(struct run *run, const struct touch *touch,
				  struct memory *memory, size_t page)
{
	unsigned int threads = param_number(run, "threads");
	struct share *shares = calloc(threads, sizeof(*shares));
	struct memory scratch;
	enum status status;
	int error;

	if (!shares || memory_map(&scratch, threads * page_size(), page_size())) {
		free(shares);
		return wrong(run, "no memory for %u threads", threads);
	}
	error = thp_advise(&scratch, page_size());
	if (!error && !is_hugetlb(run))
		error = param_number(run, "set-thp") ?
			thp_advise_and_wait(memory, page) :
			thp_advise(memory, page);
	if (error) {
		status = wrong(run, "madvise: %s", strerror(-error));
	} else {
		for (unsigned int i = 0; i < threads; i++) {
			shares[i].touch = touch->pages ? touch : NULL;
			shares[i].scratch = scratch.start + i * page_size();
		}
		region_timeline(run, memory->start, memory->size, true);
		status = measure_shares(run, memory, shares, page);
	}
	memory_unmap(&scratch);
	free(shares);
	return status;
}

static enum status check_request(struct run *run, const struct touch *touch,
				 size_t page)
{
	uint64_t threads = param_number(run, "threads");
	uint64_t pages = param_number(run, "size") / page;
	enum status status;

	status = memory_check_size(run, "size", page, "page");
	if (status)
		return status;
	if (threads > pages)
		return refuse(run,
			      "--threads %lu is more than there are pages: give at most %lu",
			      threads, pages);
	if (threads > 1 && param_number(run, "timeline"))
		return refuse(run,
			      "--timeline follows one thread: leave it out or give --threads 1");
	if (!touch->pages && param_number(run, "timeline"))
		return refuse(run,
			      "--timeline sees nothing of madvise, whose faults are the kernel's own: leave it out");
	return STATUS_OK;
}

static enum status measure(struct run *run)
{
	size_t page = is_hugetlb(run) ? HUGEPAGE_BYTES :
					thp_page_bytes(param_text(run, "page"));
	const struct touch *touch = touch_find(param_text(run, "by"));
	bool unavailable, set = param_number(run, "set-thp");
	struct memory memory;
	enum status status;
	size_t added = 0;
	int error;

	if (!param_given(run, "threads"))
		param_decide(run, "threads", param_number(run, "cpus"));
	status = check_request(run, touch, page);
	if (!status)
		status = cpus_keep_to(run);
	if (status)
		return status;
	if (touch_unavailable(touch))
		return result_unavailable(run, "%s", touch_unavailable(touch));
	status = thp_prepare(run, is_hugetlb(run) ? page_size() : page, set,
			     &unavailable);
	if (status || unavailable)
		return status;

	error = memory_map(&memory, param_number(run, "size"), MEMORY_ALIGN);
	if (error)
		return refuse(run, "--size %lu cannot be mapped (%s): give a smaller one",
			      param_number(run, "size"), strerror(-error));
	if (is_hugetlb(run) &&
	    !hugetlb_map(memory.start, memory.size, set, 1, &added))
		status = hugetlb_unavailable(run, memory.size);
	else
		status = measure_memory(run, touch, &memory, page);
	memory_unmap(&memory);
	hugetlb_give_back(added);
	return status;
}

static const struct param params[] = {
	{
		.name = "by", .help = "what touches first",
		.type = PARAM_CHOICE, .choices = touch_writing, .def = "ldadd",
	}, {
		.name = "page", .help = "size of page to be faulted in",
		.type = PARAM_CHOICE, .choices = page_kind, .def = "4k",
	}, {
		.name = "size", .help = "bytes of memory",
		.type = PARAM_SIZE, .def = "1073741824", .min = 4096,
	}, {
		.name = "threads",
		.help = "that touch a share each; one on each of --cpus if not given",
		.type = PARAM_COUNT, .min = 1, .max = MAX_THREADS,
	},
	CPUS_PARAM("that the threads are pinned to, in turn"),
	{
		.name = "set-thp", .type = PARAM_FLAG, .option = true,
		.help = "write the huge page policy, or pool, that --page needs (root)",
	},
	TIMELINE_PARAM,
	{ }
};

static const struct metric metrics[] = {
	{ "anon_huge_bytes", "bytes", "of the memory that PMDs map" },
	{ "folio_fault_alloc", "folios", "of --page's size, allocated by faults" },
	{ "folio_fault_fallback", "folios", "of --page's size that faults failed to allocate" },
	{ }
};

static const struct experiment populate = {
	.name = "populate",
	.summary = "first touch of anonymous memory, by one kind of instruction",
	.detail =
"Maps private anonymous memory and touches each of the kernel's pages in it once,\n"
"in order of address. madvise lets the kernel do it (MADV_POPULATE_WRITE): the\n"
"floor. Pages larger than base pages need a policy that gives them and no larger\n"
"ones.\n"
"What each touch leaves in its page is checked afterwards. On x86-64 ldadd, swp,\n"
"cas and casp are LOCK XADD, XCHG, LOCK CMPXCHG and LOCK CMPXCHG16B.",
	.example = "--by ldadd --page 4k --size 1G --cpus 1",
	.params = params,
	.metrics = metrics,
	.measure = measure,
};

EXPERIMENT(populate);
