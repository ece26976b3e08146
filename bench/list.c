// SPDX-License-Identifier: GPL-2.0
#include "catalogue.h"
#include "json.h"
#include "list.h"

static const char * const type_names[] = {
	[PARAM_CHOICE] = "choice",
	[PARAM_SIZE] = "size",
	[PARAM_COUNT] = "count",
	[PARAM_FLAG] = "flag",
	[PARAM_PATH] = "path",
};

void list_plain(const struct experiment * const *list, FILE *out)
{
	for (const struct experiment * const *e = list; *e; e++)
		fprintf(out, "%-16s %s\n", (*e)->name, (*e)->summary);
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
		for (size_t i = 0; catalogue_choice(param, i); i++) {
			fputs(i ? "," : "", out);
			json_string(out, catalogue_choice(param, i));
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

static void json_params(FILE *out, const struct experiment *experiment,
			bool option)
{
	const struct param *param;
	const char *comma = "";

	for (size_t i = 0; (param = catalogue_param(experiment, i)); i++) {
		if (param->option != option)
			continue;
		fputs(comma, out);
		json_param(out, param);
		comma = ",";
	}
}

static void json_metrics(FILE *out, const struct experiment *experiment)
{
	const struct metric *metric;

	for (size_t i = 0; (metric = catalogue_metric(experiment, i)); i++) {
		fputs(i ? ",{" : "{", out);
		json_member(out, "name", metric->name);
		fputc(',', out);
		json_member(out, "unit", metric->unit);
		fputc(',', out);
		json_member(out, "help", metric->help);
		fputc('}', out);
	}
}

static void json_experiment(FILE *out, const struct experiment *e)
{
	fputc('{', out);
	json_member(out, "name", e->name);
	fputc(',', out);
	json_member(out, "summary", e->summary);
	fputc(',', out);
	json_member(out, "detail", e->detail);
	fputs(",\"params\":[", out);
	json_params(out, e, false);
	fputs("],\"options\":[", out);
	json_params(out, e, true);
	fputs("],\"metrics\":[", out);
	json_metrics(out, e);
	fputs("]}", out);
}

void list_json(const struct experiment * const *list, FILE *out)
{
	fputs("{\"schema\":1,\"program\":\"ftbench\",\"experiments\":[", out);
	for (const struct experiment * const *e = list; *e; e++) {
		fputs(e == list ? "" : ",", out);
		json_experiment(out, *e);
	}
	fputs("]}\n", out);
}

void help_program(const struct experiment * const *list, FILE *out)
{
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
	for (const struct experiment * const *e = list; *e; e++)
		fprintf(out, "  ftbench %s %s\n", (*e)->name, (*e)->example);
}

static void help_param(FILE *out, const struct param *param)
{
	fprintf(out, "  --%-12s %s", param->name, param->help);
	if (param->type == PARAM_CHOICE) {
		fputs(":", out);
		for (size_t i = 0; catalogue_choice(param, i); i++)
			fprintf(out, " %s", catalogue_choice(param, i));
	}
	if (param->def)
		fprintf(out, " (default: %s)", param->def);
	fputc('\n', out);
}

void help_experiment(const struct experiment *experiment, FILE *out)
{
	const struct metric *metric;
	const struct param *param;

	fprintf(out, "ftbench %s: %s\n\n%s\n\n", experiment->name,
		experiment->summary, experiment->detail);
	for (size_t i = 0; (param = catalogue_param(experiment, i)); i++)
		help_param(out, param);
	fputs("\nMetrics beside those of every region (ftbench --list=json has them all):\n",
	      out);
	for (size_t i = 0; (metric = catalogue_own_metric(experiment, i)); i++)
		fprintf(out, "  %-22s %s; %s\n", metric->name, metric->help,
			metric->unit);
	fprintf(out, "\nExample:\n  ftbench %s %s\n", experiment->name,
		experiment->example);
}
