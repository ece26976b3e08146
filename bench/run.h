/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One run of an experiment: the request and its results.
 */
#ifndef RUN_H
#define RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "experiment.h"

#define MAX_PARAMS	24
#define MAX_RESULTS	96

struct value {
	const struct param *param;
	const char *text;	/* choice or path */
	uint64_t number;	/* size or count; 1 for a flag that is given */
	bool given;		/* by user, default or experiment */
	bool by_user;
};

struct result {
	const char *name;
	uint64_t value;
	char absent[224];	/* why there is no value, or empty */
};

struct note {
	const char *name;
	char *text;
};

struct region;

struct run {
	const struct experiment *experiment;
	struct value values[MAX_PARAMS];
	size_t nr_values;
	/* The metrics that are required: all but counters not requested. */
	const struct metric *metrics[MAX_RESULTS];
	size_t nr_metrics;

	unsigned int nr;	/* which of the repetitions, from 1 */
	struct result results[MAX_RESULTS];
	size_t nr_results;
	struct note notes[4];
	size_t nr_notes;
	const char *regions[4];
	size_t nr_regions;

	struct region *region;	/* see region.h */
};

/* The value of a parameter of this run, by the name in struct param. */
uint64_t param_number(const struct run *run, const char *name);
const char *param_text(const struct run *run, const char *name);
bool param_given(const struct run *run, const char *name);

/* Sets a parameter that was not given; it is reported as if it was given. */
void param_decide(struct run *run, const char *name, uint64_t number);

/* The index of a parameter in run->values; run->nr_values: not found. */
size_t param_place(const struct run *run, const char *name);

/*
 * Two ways to give up. Each prints one sentence and returns the status that the
 * experiment must return. wrong: a self-check failed. refuse: the user must
 * change the request, and the sentence says how. @run may be NULL.
 */
enum status wrong(const struct run *run, const char *what, ...)
	__printf(2, 3);
enum status refuse(const struct run *run, const char *what, ...)
	__printf(2, 3);

#endif /* RUN_H */
