// SPDX-License-Identifier: GPL-2.0
/*
 * The command line after the experiment's name: --param value or
 * --param=value, checked against the parameters that the experiment declares.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catalogue.h"
#include "nearest.h"
#include "options.h"

#define MAX_CHOICES	64	/* searched for the nearest one */

static void add_params(struct run *run)
{
	const struct param *param;

	while ((param = catalogue_param(run->experiment, run->nr_values))) {
		if (run->nr_values == MAX_PARAMS)
			abort();
		run->values[run->nr_values++].param = param;
	}
}

static enum status refuse_choice(const struct run *run,
				 const struct param *param, const char *text)
{
	const char *names[MAX_CHOICES + 1] = { };
	const char *meant;
	char all[160];
	size_t len = 0;

	for (size_t i = 0; i < MAX_CHOICES && catalogue_choice(param, i); i++)
		names[i] = catalogue_choice(param, i);
	meant = nearest_word(text, names);
	if (meant)
		return refuse(run, "--%s \"%s\" is unknown: did you mean \"%s\"?",
			      param->name, text, meant);
	for (size_t i = 0; names[i] && len < sizeof(all); i++)
		len += snprintf(all + len, sizeof(all) - len, "%s%s",
				len ? ", " : "", names[i]);
	return refuse(run, "--%s \"%s\" is unknown: give one of %s",
		      param->name, text, all);
}

/* The power of two that a suffix stands for (0: none); -1: no suffix. */
static int suffix_shift(const char *suffix)
{
	if (!*suffix)
		return 0;
	if (suffix[1])
		return -1;
	switch (toupper(*suffix)) {
	case 'K':
		return 10;
	case 'M':
		return 20;
	case 'G':
		return 30;
	default:
		return -1;
	}
}

static enum status read_number(const struct run *run, struct value *value,
			       const char *text)
{
	const struct param *param = value->param;
	const char *like = param->type == PARAM_SIZE ?
		"a number of bytes, such as 1073741824 or 1G" :
		"a number, such as 1";
	int shift = 0;
	char *end;

	/* strtoull() accepts a sign: -1 would become the largest number. */
	if (*text == '-')
		return refuse(run, "--%s %s is negative: give %s",
			      param->name, text, like);
	if (!isdigit(*text))
		return refuse(run, "--%s \"%s\" is not a number: give %s",
			      param->name, text, like);
	errno = 0;
	value->number = strtoull(text, &end, 10);
	if (param->type == PARAM_SIZE)
		shift = suffix_shift(end);
	else if (*end)
		shift = -1;
	if (shift < 0)
		return refuse(run, "--%s \"%s\" is not a number: give %s",
			      param->name, text, like);
	if (errno || value->number > (uint64_t)INT64_MAX >> shift)
		return refuse(run, "--%s %s is too large for any machine: give a smaller one",
			      param->name, text);
	value->number <<= shift;

	if (value->number < param->min)
		return refuse(run, "--%s %s is too small: give at least %lu",
			      param->name, text, param->min);
	if (param->max && value->number > param->max)
		return refuse(run, "--%s %s is too large: give at most %lu",
			      param->name, text, param->max);
	return STATUS_OK;
}

static enum status set_value(const struct run *run, struct value *value,
			     const char *text)
{
	const struct param *param = value->param;
	const char *choice;

	value->given = true;
	switch (param->type) {
	case PARAM_FLAG:
		value->number = 1;
		return STATUS_OK;
	case PARAM_SIZE:
	case PARAM_COUNT:
		return read_number(run, value, text);
	case PARAM_PATH:
		if (!*text)
			return refuse(run, "--%s is empty: give a path",
				      param->name);
		value->text = text;
		return STATUS_OK;
	case PARAM_CHOICE:
		break;
	}
	for (size_t i = 0; (choice = catalogue_choice(param, i)); i++) {
		if (!strcmp(choice, text)) {
			value->text = choice;
			return STATUS_OK;
		}
	}
	return refuse_choice(run, param, text);
}

static enum status refuse_name(const struct run *run, const char *name)
{
	const char *names[MAX_PARAMS + 1] = { };
	const char *meant;

	for (size_t i = 0; i < run->nr_values; i++)
		names[i] = run->values[i].param->name;
	meant = nearest_word(name, names);
	if (meant)
		return refuse(run, "option --%s is unknown: did you mean --%s?",
			      name, meant);
	return refuse(run, "option --%s is unknown: see ftbench %s --help",
		      name, run->experiment->name);
}

/* One argument, and the next one if it is this one's value. */
static enum status parse_one(struct run *run, char **argv, int *used)
{
	const char *text = argv[0];
	char name[64];
	struct value *value;
	size_t len, place;

	*used = 1;
	if (strncmp(text, "--", 2) || !text[2])
		return refuse(run,
			      "\"%s\" is not an option: options begin with -- and stand before their value",
			      text);
	text += 2;
	len = strcspn(text, "=");
	if (len >= sizeof(name))
		return refuse(run, "option --%s is unknown: see ftbench %s --help",
			      text, run->experiment->name);
	memcpy(name, text, len);
	name[len] = '\0';
	place = param_place(run, name);
	if (place == run->nr_values)
		return refuse_name(run, name);
	value = &run->values[place];
	if (value->by_user)
		return refuse(run, "--%s is given twice: give it once", name);
	value->by_user = true;

	if (value->param->type == PARAM_FLAG) {
		if (text[len])
			return refuse(run, "--%s takes no value: leave out \"%s\"",
				      name, text + len);
		return set_value(run, value, NULL);
	}
	if (text[len])
		return set_value(run, value, text + len + 1);
	if (!argv[1])
		return refuse(run, "--%s lacks its value: give one after it",
			      name);
	*used = 2;
	return set_value(run, value, argv[1]);
}

enum status options_parse(struct run *run, int argc, char **argv)
{
	enum status status = STATUS_OK;
	int used;

	add_params(run);
	for (size_t i = 0; i < run->nr_values && !status; i++)
		if (run->values[i].param->def)
			status = set_value(run, &run->values[i],
					   run->values[i].param->def);
	for (int i = 0; i < argc && !status; i += used)
		status = parse_one(run, argv + i, &used);
	return status;
}
