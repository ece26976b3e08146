// SPDX-License-Identifier: GPL-2.0
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "result.h"

static bool declared(const struct run *run, const char *name)
{
	for (size_t i = 0; i < run->nr_metrics; i++)
		if (!strcmp(run->metrics[i]->name, name))
			return true;
	return false;
}

/* Readers know only the metrics that --list announces. */
static struct result *new_result(struct run *run, const char *name)
{
	struct result *result = &run->results[run->nr_results];

	if (!declared(run, name)) {
		fprintf(stderr, "ftbench: %s does not declare the metric %s\n",
			run->experiment->name, name);
		abort();
	}
	if (run->nr_results++ == MAX_RESULTS)
		abort();
	result->name = name;
	result->absent[0] = '\0';
	return result;
}

void result_add(struct run *run, const char *name, uint64_t value)
{
	new_result(run, name)->value = value;
}

void result_absent(struct run *run, const char *name, const char *why, ...)
{
	struct result *result = new_result(run, name);
	va_list args;

	va_start(args, why);
	vsnprintf(result->absent, sizeof(result->absent), why, args);
	va_end(args);
}

void result_note(struct run *run, const char *name, const char *text)
{
	struct note *note = &run->notes[run->nr_notes];

	if (run->nr_notes++ == ARRAY_SIZE(run->notes))
		abort();
	note->name = name;
	note->text = strdup(text);
	if (!note->text)
		abort();
}

enum status result_unavailable(struct run *run, const char *why, ...)
{
	char text[sizeof(run->results[0].absent)];
	va_list args;

	va_start(args, why);
	vsnprintf(text, sizeof(text), why, args);
	va_end(args);

	result_reset(run);
	for (size_t i = 0; i < run->nr_metrics; i++)
		result_absent(run, run->metrics[i]->name, "%s", text);
	return STATUS_OK;
}

void result_reset(struct run *run)
{
	while (run->nr_notes)
		free(run->notes[--run->nr_notes].text);
	run->nr_results = 0;
	run->nr_regions = 0;
}

static void print_params(const struct run *run, FILE *out)
{
	const char *comma = "";

	fputs("\"params\":{", out);
	for (size_t i = 0; i < run->nr_values; i++) {
		const struct value *value = &run->values[i];

		if (value->param->option || !value->given)
			continue;
		fputs(comma, out);
		json_string(out, value->param->name);
		fputc(':', out);
		if (value->text)
			json_string(out, value->text);
		else
			fprintf(out, "%lu", value->number);
		comma = ",";
	}
	fputc('}', out);
}

static void print_results(const struct run *run, FILE *out, bool absent)
{
	const char *comma = "";

	fprintf(out, ",\"%s\":{", absent ? "unavailable" : "metrics");
	for (size_t i = 0; i < run->nr_results; i++) {
		const struct result *result = &run->results[i];

		if (!!result->absent[0] != absent)
			continue;
		fputs(comma, out);
		json_string(out, result->name);
		fputc(':', out);
		if (absent)
			json_string(out, result->absent);
		else
			fprintf(out, "%lu", result->value);
		comma = ",";
	}
	fputc('}', out);
}

void result_print(const struct run *run, const struct timeline *timeline,
		  FILE *out)
{
	fputs("{\"schema\":1,\"experiment\":", out);
	json_string(out, run->experiment->name);
	fputc(',', out);
	print_params(run, out);
	fprintf(out, ",\"run\":%u", run->nr);
	print_results(run, out, false);
	print_results(run, out, true);
	for (size_t i = 0; i < run->nr_notes; i++) {
		fputc(',', out);
		json_string(out, run->notes[i].name);
		fputc(':', out);
		json_string(out, run->notes[i].text);
	}
	timeline_print(timeline, out);
	fputs(",\"regions\":[", out);
	for (size_t i = 0; i < run->nr_regions; i++) {
		fputs(i ? "," : "", out);
		json_string(out, run->regions[i]);
	}
	fputs("]}\n", out);
}
