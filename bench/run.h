/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One run of an experiment: what was asked for, and what came out of it.
 */
#ifndef RUN_H
#define RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "counters.h"
#include "ftbench.h"
#include "region.h"
#include "timeline.h"

#define MAX_PARAMS	24
#define MAX_RESULTS	96

struct value {
	const struct param *param;
	const char *text;	/* choice or path */
	uint64_t number;	/* size or count; 1 for a flag that is given */
	bool given;		/* by the user, by the default, or decided */
	bool by_user;
};

struct result {
	const char *name;
	uint64_t value;
	char absent[224];	/* why there is no value; empty: there is one */
};

struct note {
	const char *name;
	char text[64];
};

struct run {
	const struct experiment *experiment;
	struct value values[MAX_PARAMS];
	size_t nr_values;

	unsigned int nr;	/* which of the repetitions, from 1 */
	struct result results[MAX_RESULTS];
	size_t nr_results;
	struct note notes[4];
	size_t nr_notes;
	const char *regions[4];
	size_t nr_regions;

	struct region region;
	struct counters counters;
	struct timeline timeline;
};

/* Options that every experiment has, and metrics that every region has. */
extern const struct param common_params[];
extern const struct metric region_metrics[];

/*
 * Reads the arguments after the experiment's name into run->values.
 * An error is printed and STATUS_USAGE returned.
 */
enum status options_parse(struct run *run, int argc, char **argv);

/* The candidate that a misspelt word was most probably meant to be, or NULL. */
const char *nearest_word(const char *word, const char * const *candidates);

/* Forgets the results of the last repetition. */
void result_reset(struct run *run);

/* Writes the run as one line of JSON. */
void result_print(const struct run *run, FILE *out);

/* --list, --list=json, --help and EXPERIMENT --help. */
void list_plain(FILE *out);
void list_json(FILE *out);
void help_program(FILE *out);
void help_experiment(const struct experiment *experiment, FILE *out);

/* The experiments in the order of their names; ends in NULL. */
const struct experiment **experiments_sorted(void);

#endif /* RUN_H */
