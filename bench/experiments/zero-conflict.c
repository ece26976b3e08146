// SPDX-License-Identifier: GPL-2.0
/*
 * Hot lines that fill one cache set against the kernel's zero pages: the second
 * experiment of the third posting, for every colour that the lines can have.
 */
#include <string.h>

#include "conflict.h"
#include "run.h"
#include "thp.h"

static enum status measure(struct run *run)
{
	size_t pages = param_number(run, "zero_pages");
	struct conflict conflict = { };
	struct memory zero;
	enum status status;
	bool unavailable = false;
	int error;

	status = conflict_prepare(run, &conflict, &unavailable);
	if (status || unavailable)
		return status;
	error = memory_map(&zero, pages * page_size(), HUGEPAGE_BYTES);
	if (!error) {
		error = thp_advise(&zero, page_size());
		if (!error)
			status = conflict_measure(run, &conflict, zero.start,
						  pages);
		memory_unmap(&zero);
	}
	conflict_finish(&conflict);
	if (error)
		return wrong(run, "mapping the zero pages: %s",
			     strerror(-error));
	return status;
}

static const struct param params[] = {
	{ }
};

static const struct metric metrics[] = {
	{ }
};

static const struct experiment zero_conflict = {
	.name = "zero-conflict",
	.summary = "hot lines that fill one cache set, and the kernel's zero pages",
	.detail =
"Each round reads as many lines as a set has ways, a way's size apart, then one\n"
"page of memory that was never written, the next page in the next round. If the\n"
"zero page behind it has the hot lines' colour, all of them miss. Set ways and\n"
"way_size for a modelled cache; without, the kernel's own words are taken.",
	.example = "--hot_color 3 --level l2 --ways 8 --way_size 32K --rounds 100000",
	.params = params,
	.metrics = metrics,
	.shared_params = conflict_param,
	.shared_metrics = conflict_metric,
	.measure = measure,
};

EXPERIMENT(zero_conflict);
