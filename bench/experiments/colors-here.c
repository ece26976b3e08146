// SPDX-License-Identifier: GPL-2.0
/*
 * What colour zero pages would do on this machine, without a changed kernel.
 */
#include <string.h>

#include "conflict.h"
#include "run.h"
#include "shmem.h"

static enum status check_request(const struct run *run)
{
	uint64_t colors = param_number(run, "colors");
	uint64_t most = HUGEPAGE_BYTES / page_size();

	if (colors & (colors - 1))
		return refuse(run, "--colors %lu is not a power of two: give one, such as 4",
			      colors);
	if (colors > most)
		return refuse(run, "--colors %lu do not fit a huge page: give at most %lu",
			      colors, most);
	return STATUS_OK;
}

static enum status measure_pieces(struct run *run, const struct shmem *shmem)
{
	size_t pages = param_number(run, "zero_pages");
	struct conflict conflict = { };
	struct memory pieces;
	enum status status;
	bool unavailable = false;
	int error;

	status = conflict_prepare(run, &conflict, &unavailable);
	if (status || unavailable)
		return status;
	error = shmem_map_pieces(shmem, &pieces, pages,
				 param_number(run, "colors"));
	if (!error) {
		status = conflict_measure(run, &conflict, pieces.start, pages);
		memory_unmap(&pieces);
	}
	conflict_finish(&conflict);
	if (error)
		return wrong(run, "mapping the pieces: %s", strerror(-error));
	return status;
}

static enum status measure(struct run *run)
{
	struct shmem shmem;
	enum status status;
	bool unavailable;

	status = check_request(run);
	if (status)
		return status;
	status = shmem_get(run, &shmem, param_number(run, "set-thp"),
			   &unavailable);
	if (status || unavailable)
		return status;
	status = measure_pieces(run, &shmem);
	shmem_put(&shmem);
	return status;
}

static const struct param params[] = {
	{
		.name = "colors", .type = PARAM_COUNT, .def = "1", .min = 1,
		.help = "zero pages that the kernel would have, one of each colour",
	},
	{
		.name = "set-thp", .type = PARAM_FLAG, .option = true,
		.help = "allow shared memory huge pages on this system (root)",
	},
	{ }
};

static const struct metric metrics[] = {
	{ }
};

static const struct experiment colors_here = {
	.name = "colors-here",
	.summary = "zero-conflict with a stand-in for one or several zero pages",
	.detail =
"The same as zero-conflict, but the zero pages are the first pages of a shared\n"
"memory huge page, mapped in base pages by turns, as a kernel with so many\n"
"colours would map its zero pages. Needs no changed kernel: compare the time\n"
"with --colors 1 and with more, for every --hot_color.",
	.example = "--colors 4 --hot_color 0 --level l2 --rounds 1000000",
	.params = params,
	.metrics = metrics,
	.shared_params = conflict_param,
	.shared_metrics = conflict_metric,
	.measure = measure,
};

EXPERIMENT(colors_here);
