// SPDX-License-Identifier: GPL-2.0
/*
 * ftbench: finds the experiment that is asked for, runs it, prints its results.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "run.h"

static void complain(const struct run *run, const char *what, va_list args)
{
	fputs("ftbench: ", stderr);
	if (run)
		fprintf(stderr, "%s: ", run->experiment->name);
	vfprintf(stderr, what, args);
	fputc('\n', stderr);
}

enum status refuse(const struct run *run, const char *what, ...)
{
	va_list args;

	va_start(args, what);
	complain(run, what, args);
	va_end(args);
	return STATUS_USAGE;
}

enum status wrong(const struct run *run, const char *what, ...)
{
	va_list args;

	va_start(args, what);
	complain(run, what, args);
	va_end(args);
	return STATUS_WRONG;
}

static const struct experiment *find_experiment(const char *name)
{
	const struct experiment * const *e;

	for (e = __start_ft_experiments; e < __stop_ft_experiments; e++)
		if (!strcmp((*e)->name, name))
			return *e;
	return NULL;
}

static enum status refuse_experiment(const char *name)
{
	const struct experiment **list = experiments_sorted();
	size_t nr = __stop_ft_experiments - __start_ft_experiments;
	const char *names[nr + 1];
	const char *meant;

	for (size_t i = 0; i < nr; i++)
		names[i] = list[i]->name;
	names[nr] = NULL;
	free(list);

	meant = nearest_word(name, names);
	if (meant)
		return refuse(NULL, "experiment \"%s\" is unknown: did you mean \"%s\"?",
			      name, meant);
	return refuse(NULL, "experiment \"%s\" is unknown: ftbench --list names them",
		      name);
}

/* Results that did not reach their reader must not look like success. */
static enum status flush_results(enum status status)
{
	if (fflush(stdout) || ferror(stdout)) {
		perror("ftbench: writing the results");
		return STATUS_WRONG;
	}
	return status;
}

static enum status measure_all(struct run *run)
{
	unsigned int repeat = param_number(run, "repeat");
	enum status status = STATUS_OK;

	run->counters.set = param_text(run, "counters");
	counters_open(&run->counters);
	for (run->nr = 1; run->nr <= repeat && !status; run->nr++) {
		result_reset(run);
		status = run->experiment->measure(run);
		if (!status) {
			result_print(run, stdout);
			status = flush_results(status);
		}
	}
	result_reset(run);
	return status;
}

static bool asks_for_help(int argc, char **argv)
{
	for (int i = 0; i < argc; i++)
		if (!strcmp(argv[i], "--help"))
			return true;
	return false;
}

static enum status main_experiment(int argc, char **argv)
{
	/* Large, and not to be on the stack that the kernel must fault in. */
	static struct run run;
	enum status status;

	run.experiment = find_experiment(argv[1]);
	if (!run.experiment)
		return refuse_experiment(argv[1]);
	if (asks_for_help(argc - 2, argv + 2)) {
		help_experiment(run.experiment, stdout);
		return flush_results(STATUS_OK);
	}
	status = options_parse(&run, argc - 2, argv + 2);
	if (status)
		return status;
	return measure_all(&run);
}

int main(int argc, char **argv)
{
	void (*answer)(FILE *out) = NULL;

	if (argc < 2)
		return refuse(NULL,
			      "no experiment is named: ftbench --list names them, ftbench --help explains");
	if (argv[1][0] != '-')
		return main_experiment(argc, argv);

	if (!strcmp(argv[1], "--files")) {
		files_print(argv + 2, stdout);
		return flush_results(STATUS_OK);
	}
	if (!strcmp(argv[1], "--help"))
		answer = help_program;
	else if (!strcmp(argv[1], "--list"))
		answer = list_plain;
	else if (!strcmp(argv[1], "--list=json"))
		answer = list_json;
	if (!answer)
		return refuse(NULL, "\"%s\" is not an experiment: name it first, then its options",
			      argv[1]);
	if (argc > 2)
		return refuse(NULL, "\"%s\" is too much after %s: leave it out",
			      argv[2], argv[1]);
	answer(stdout);
	return flush_results(STATUS_OK);
}
