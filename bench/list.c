// SPDX-License-Identifier: GPL-2.0
/*
 * What ftbench says of itself, to people and to the laboratory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "run.h"

static const char * const type_names[] = {
	[PARAM_CHOICE] = "choice",
	[PARAM_SIZE] = "size",
	[PARAM_COUNT] = "count",
	[PARAM_FLAG] = "flag",
	[PARAM_PATH] = "path",
};

static int by_name(const void *a, const void *b)
{
	const struct experiment * const *x = a, * const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

/* The linker's order depends on file names; readers want the names'. */
const struct experiment **experiments_sorted(void)
{
	size_t nr = __stop_ft_experiments - __start_ft_experiments;
	const struct experiment **list = calloc(nr + 1, sizeof(*list));

	if (!list) {
		perror("ftbench");
		exit(STATUS_WRONG);
	}
	memcpy(list, __start_ft_experiments, nr * sizeof(*list));
	qsort(list, nr, sizeof(*list), by_name);
	return list;
}

void list_plain(FILE *out)
{
	const struct experiment **list = experiments_sorted();

	for (const struct experiment **e = list; *e; e++)
		fprintf(out, "%-16s %s\n", (*e)->name, (*e)->summary);
	free(list);
}

static void json_member(FILE *out, const char *name, const char *text)
{
	fprintf(out, "\"%s\":", name);
	json_string(out, text);
}

static void json_default(FILE *out, const struct param *param)
{
	fputs(",\"default\":", out);
	if (param->type == PARAM_FLAG)
		fputs("false", out);
	else if (!param->def)
		fputs("null", out);
	else if (param->type == PARAM_SIZE || param->type == PARAM_COUNT)
		fputs(param->def, out);
	else
		json_string(out, param->def);
}

static void json_param(FILE *out, const struct param *param)
{
	fputc('{', out);
	json_member(out, "name", param->name);
	fputc(',', out);
	json_member(out, "type", type_names[param->type]);
	json_default(out, param);
	if (param->type == PARAM_CHOICE) {
		fputs(",\"choices\":[", out);
		for (const char * const *c = param->choices; *c; c++) {
			fputs(c == param->choices ? "" : ",", out);
			json_string(out, *c);
		}
		fputc(']', out);
	}
	if (param->min)
		fprintf(out, ",\"min\":%lu", param->min);
	if (param->max)
		fprintf(out, ",\"max\":%lu", param->max);
	fputc(',', out);
	json_member(out, "help", param->help);
	fputc('}', out);
}

static const char *json_params(FILE *out, const struct param *param,
			       bool option, const char *comma)
{
	for (; param && param->name; param++) {
		if (param->option != option)
			continue;
		fputs(comma, out);
		json_param(out, param);
		comma = ",";
	}
	return comma;
}

static const char *json_metrics(FILE *out, const struct metric *metric,
				const char *comma)
{
	for (; metric && metric->name; metric++) {
		fprintf(out, "%s{", comma);
		json_member(out, "name", metric->name);
		fputc(',', out);
		json_member(out, "unit", metric->unit);
		fputc(',', out);
		json_member(out, "help", metric->help);
		fputc('}', out);
		comma = ",";
	}
	return comma;
}

static void json_experiment(FILE *out, const struct experiment *e)
{
	const char *comma;

	fputc('{', out);
	json_member(out, "name", e->name);
	fputc(',', out);
	json_member(out, "summary", e->summary);
	fputc(',', out);
	json_member(out, "detail", e->detail);
	fputs(",\"params\":[", out);
	comma = json_params(out, e->params, false, "");
	json_params(out, e->shared_params, false, comma);
	fputs("],\"options\":[", out);
	comma = json_params(out, e->params, true, "");
	comma = json_params(out, e->shared_params, true, comma);
	json_params(out, common_params, true, comma);
	fputs("],\"metrics\":[", out);
	comma = json_metrics(out, region_metrics, "");
	comma = json_metrics(out, e->metrics, comma);
	json_metrics(out, e->shared_metrics, comma);
	fputs("]}", out);
}

void list_json(FILE *out)
{
	const struct experiment **list = experiments_sorted();

	fputs("{\"schema\":1,\"program\":\"ftbench\",\"experiments\":[", out);
	for (const struct experiment **e = list; *e; e++) {
		fputs(e == list ? "" : ",", out);
		json_experiment(out, *e);
	}
	fputs("]}\n", out);
	free(list);
}

void help_program(FILE *out)
{
	const struct experiment **list = experiments_sorted();

	fputs("ftbench: what the first touch of a page and the zero page's cache sets cost\n"
	      "\n"
	      "ftbench EXPERIMENT [--param value]...   measure; one line of JSON per run\n"
	      "ftbench EXPERIMENT --help               what it does and takes\n"
	      "ftbench --list                          the experiments\n"
	      "ftbench --list=json                     the same for programs, with parameters and metrics\n"
	      "ftbench --files PATTERN...              files of the kernel's, as one line of JSON\n"
	      "\n"
	      "Exit status: 0 it ran, or this machine cannot run it (see \"unavailable\" in the\n"
	      "line); 1 a self-check failed; 2 the request cannot be carried out.\n"
	      "\n"
	      "Examples:\n", out);
	for (const struct experiment **e = list; *e; e++)
		fprintf(out, "  ftbench %s %s\n", (*e)->name, (*e)->example);
	free(list);
}

static void help_params(FILE *out, const struct param *param)
{
	for (; param && param->name; param++) {
		fprintf(out, "  --%-12s %s", param->name, param->help);
		if (param->type == PARAM_CHOICE) {
			fputs(":", out);
			for (const char * const *c = param->choices; *c; c++)
				fprintf(out, " %s", *c);
		}
		if (param->def)
			fprintf(out, " (default: %s)", param->def);
		fputc('\n', out);
	}
}

static void help_metrics(FILE *out, const struct metric *metric)
{
	for (; metric && metric->name; metric++)
		fprintf(out, "  %-22s %s; %s\n", metric->name, metric->help,
			metric->unit);
}

void help_experiment(const struct experiment *experiment, FILE *out)
{
	fprintf(out, "ftbench %s: %s\n\n%s\n\n", experiment->name,
		experiment->summary, experiment->detail);
	help_params(out, experiment->params);
	help_params(out, experiment->shared_params);
	help_params(out, common_params);
	fputs("\nMetrics beside those of every region (ftbench --list=json has them all):\n",
	      out);
	help_metrics(out, experiment->metrics);
	help_metrics(out, experiment->shared_metrics);
	fprintf(out, "\nExample:\n  ftbench %s %s\n", experiment->name,
		experiment->example);
}
