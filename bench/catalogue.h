/* SPDX-License-Identifier: GPL-2.0 */
/*
 * All experiments, with their parameters and metrics.
 */
#ifndef CATALOGUE_H
#define CATALOGUE_H

#include "experiment.h"

/* All experiments, in the order of names; ends in NULL, the caller frees it. */
const struct experiment **catalogue_experiments(void);

/*
 * The parameter at @place among those of the experiment, the common ones last;
 * NULL after the last one.
 */
const struct param *catalogue_param(const struct experiment *experiment,
				    size_t place);

/* The choice at @place of a parameter that has choices, or NULL. */
const char *catalogue_choice(const struct param *param, size_t place);

/* The metric at @place: without those of every region, and of all metrics. */
const struct metric *catalogue_own_metric(const struct experiment *experiment,
					  size_t place);
const struct metric *catalogue_metric(const struct experiment *experiment,
				      size_t place);

#endif /* CATALOGUE_H */
