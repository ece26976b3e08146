// SPDX-License-Identifier: GPL-2.0
/*
 * What a program leaves of its anonymous memory at its end, page by page: a page
 * that the kernel allocated and nobody wrote to is all zero.
 */
#include <stdio.h>
#include <stdlib.h>

#include "anon.h"
#include "program.h"
#include "result.h"

static void report(struct run *run, const struct anon *anon)
{
	const char *why = anon->follower.why;

	if (why) {
		result_absent(run, "anon_pages", "%s", why);
		result_absent(run, "zero_filled_pages", "%s", why);
	} else {
		result_add(run, "anon_pages", anon->pages);
		result_add(run, "zero_filled_pages", anon->zero_pages);
	}
}

static enum status measure(struct run *run)
{
	struct anon anon;
	enum status status;
	char path[4352];
	char * const *argv;

	snprintf(path, sizeof(path), "%s/%s", param_text(run, "scripts"),
		 param_text(run, "program"));
	argv = program_script(run, path);
	if (!argv)
		return STATUS_USAGE;
	anon_init(&anon);
	status = program_measure(run, &(struct command) {
		.root = param_text(run, "root"), .directory = "/tmp", .argv = argv,
		.follower = &anon.follower, .fixed = true,
	});
	free(anon.page);
	/* Where ptrace(2) is forbidden, all metrics have been refused. */
	if (status == STATUS_OK && run->nr_results < run->nr_metrics)
		report(run, &anon);
	return status;
}

static const struct param params[] = {
	{
		.name = "program", .help = "the script of this name in --scripts",
		.type = PARAM_PATH, .def = "perl-hash",
	}, {
		.name = "scripts", .help = "the folder with shell scripts",
		.type = PARAM_PATH, .def = "/scripts", .option = true,
	},
	{ }
};

static const struct metric metrics[] = {
	{ "anon_pages", "pages", "anonymous and resident at exit, sum over processes" },
	{ "zero_filled_pages", "pages", "of these that hold only zeroes" },
	{ }
};

static const struct experiment waste = {
	.name = "waste",
	.summary = "anonymous pages of a program that are all zero at its end",
	.detail =
"Runs a script without random addresses, traces its processes with ptrace(2), and\n"
"reads the anonymous memory of each as its last thread ends. A page that the kernel\n"
"allocated and nobody wrote to is all zero, but programs write zeroes, too: compare\n"
"with a kernel that allocates only what is touched. The zero page itself does not\n"
"count. A page that processes share since fork(2) counts once for each. Memory that\n"
"was unmapped, or replaced by execve(2), before is not seen.\n"
"Instructions of a traced program include the tracer's: do not compare them.",
	.example = "--scripts /scripts --program perl-hash",
	.params = params,
	.metrics = metrics,
	.shared_params = program_param,
	.measure = measure,
};

EXPERIMENT(waste);
