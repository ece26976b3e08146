/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The experiments that there are, and all that each takes and reports.
 */
#ifndef CATALOGUE_H
#define CATALOGUE_H

#include "experiment.h"

/* All of them in the order of their names; ends in NULL, and is to be freed. */
const struct experiment **catalogue_experiments(void);

/*
 * The parameter at that place of those that the experiment takes, the common
 * ones last, or NULL behind the last one.
 */
const struct param *catalogue_param(const struct experiment *experiment,
				    size_t place);

/* The choice at that place of a parameter that has some, or NULL. */
const char *catalogue_choice(const struct param *param, size_t place);

/* The metric at that place: beside those of every region, and of all. */
const struct metric *catalogue_own_metric(const struct experiment *experiment,
					  size_t place);
const struct metric *catalogue_metric(const struct experiment *experiment,
				      size_t place);

#endif /* CATALOGUE_H */
