// SPDX-License-Identifier: GPL-2.0
/*
 * ftbench: finds the requested experiment, runs it, prints its results.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catalogue.h"
#include "files.h"
#include "list.h"
#include "nearest.h"
#include "options.h"
#include "region.h"
#include "result.h"

static const struct experiment *
find_experiment(const struct experiment * const *list, const char *name)
{
	while (*list && strcmp((*list)->name, name))
		list++;
	return *list;
}

static enum status refuse_experiment(const struct experiment * const *list,
				     const char *name)
{
	const char *meant;
	size_t nr = 0;

	while (list[nr])
		nr++;

	const char *names[nr + 1];

	for (size_t i = 0; i < nr; i++)
		names[i] = list[i]->name;
	names[nr] = NULL;

	meant = nearest_word(name, names);
	if (meant)
		return refuse(NULL, "experiment \"%s\" is unknown: did you mean \"%s\"?",
			      name, meant);
	return refuse(NULL, "experiment \"%s\" is unknown: ftbench --list names them",
		      name);
}

/* If results were not written in full, the run must not report success. */
static enum status flush_results(enum status status)
{
	if (fflush(stdout) || ferror(stdout)) {
		perror("ftbench: writing the results");
		return STATUS_WRONG;
	}
	return status;
}

/* A counter that was not requested has neither a number nor a reason. */
static void expect_metrics(struct run *run)
{
	const struct metric *metric;

	for (size_t i = 0; (metric = catalogue_metric(run->experiment, i)); i++) {
		if (!counters_wanted(&run->region->counters, metric->name))
			continue;
		if (run->nr_metrics == MAX_RESULTS)
			abort();
		run->metrics[run->nr_metrics++] = metric;
	}
}

static enum status measure_all(struct run *run)
{
	unsigned int repeat = param_number(run, "repeat");
	struct region *region = run->region;
	enum status status = STATUS_OK;

	region->counters.set = param_text(run, "counters");
	expect_metrics(run);
	counters_open(&region->counters);
	for (run->nr = 1; run->nr <= repeat && !status; run->nr++) {
		result_reset(run);
		status = run->experiment->measure(run);
		if (!status) {
			result_print(run, &region->timeline, stdout);
			status = flush_results(status);
		}
		timeline_close(&region->timeline);
	}
	return status;
}

static bool asks_for_help(int argc, char **argv)
{
	for (int i = 0; i < argc; i++)
		if (!strcmp(argv[i], "--help"))
			return true;
	return false;
}

static enum status main_experiment(const struct experiment * const *list,
				   int argc, char **argv)
{
	/* Large: on the stack it would cause page faults of its own. */
	static struct region region;
	static struct run run = { .region = &region };
	enum status status;

	run.experiment = find_experiment(list, argv[1]);
	if (!run.experiment)
		return refuse_experiment(list, argv[1]);
	if (asks_for_help(argc - 2, argv + 2)) {
		help_experiment(run.experiment, stdout);
		return flush_results(STATUS_OK);
	}
	status = options_parse(&run, argc - 2, argv + 2);
	if (status)
		return status;
	return measure_all(&run);
}

static enum status answer(const struct experiment * const *list, int argc,
			  char **argv)
{
	void (*print)(const struct experiment * const *list, FILE *out) = NULL;

	if (argc < 2)
		return refuse(NULL,
			      "no experiment is named: ftbench --list names them, ftbench --help explains");
	if (argv[1][0] != '-')
		return main_experiment(list, argc, argv);

	if (!strcmp(argv[1], "--files")) {
		files_print(argv + 2, stdout);
		return flush_results(STATUS_OK);
	}
	if (!strcmp(argv[1], "--help"))
		print = help_program;
	else if (!strcmp(argv[1], "--list"))
		print = list_plain;
	else if (!strcmp(argv[1], "--list=json"))
		print = list_json;
	if (!print)
		return refuse(NULL, "\"%s\" is not an experiment: name it first, then its options",
			      argv[1]);
	if (argc > 2)
		return refuse(NULL, "\"%s\" is too much after %s: leave it out",
			      argv[2], argv[1]);
	print(list, stdout);
	return flush_results(STATUS_OK);
}

int main(int argc, char **argv)
{
	const struct experiment **list = catalogue_experiments();
	enum status status = answer(list, argc, argv);

	free(list);
	return status;
}
