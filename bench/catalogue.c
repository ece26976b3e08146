// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catalogue.h"
#include "counters.h"
#include "region.h"

/* Options that every experiment has. */
static const struct param common_params[] = {
	{
		.name = "repeat",
		.help = "measure so many times, one line of JSON each",
		.type = PARAM_COUNT, .def = "1", .min = 1, .max = 1000000,
		.option = true,
	}, {
		.name = "counters",
		.help = "a set of hardware counters to read by perf_event_open",
		.type = PARAM_CHOICE, .choices = counters_set, .def = "none",
		.option = true,
	},
};

static int by_name(const void *a, const void *b)
{
	const struct experiment * const *x = a, * const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

/* The linker's order depends on file names; sort by experiment name. */
const struct experiment **catalogue_experiments(void)
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

const struct param *catalogue_param(const struct experiment *experiment,
				    size_t place)
{
	const struct param *param;
	size_t i;

	for (param = experiment->params; param->name; param++, place--)
		if (!place)
			return param;
	for (i = 0; experiment->shared_params; i++, place--) {
		param = experiment->shared_params(i);
		if (!param)
			break;
		if (!place)
			return param;
	}
	return place < ARRAY_SIZE(common_params) ? &common_params[place] : NULL;
}

/* A caller asks for place 0, 1, ..., so never for one past the NULL. */
const char *catalogue_choice(const struct param *param, size_t place)
{
	return param->words ? param->words[place] : param->choices(place);
}

const struct metric *catalogue_own_metric(const struct experiment *experiment,
					  size_t place)
{
	const struct metric *metric;

	for (metric = experiment->metrics; metric->name; metric++, place--)
		if (!place)
			return metric;
	return experiment->shared_metrics ?
	       experiment->shared_metrics(place) : NULL;
}

const struct metric *catalogue_metric(const struct experiment *experiment,
				      size_t place)
{
	size_t i;

	for (i = 0; region_metric(i); i++, place--)
		if (!place)
			return region_metric(i);
	return catalogue_own_metric(experiment, place);
}
