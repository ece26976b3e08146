/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The results of a run: metrics, absent metrics with the reason, and the line
 * of JSON that has both.
 */
#ifndef RESULT_H
#define RESULT_H

#include <stdint.h>
#include <stdio.h>

#include "run.h"
#include "timeline.h"

/* Records a measurement. The name must be that of a struct metric. */
void result_add(struct run *run, const char *name, uint64_t value);

/* Records that a metric could not be measured, and why. */
void result_absent(struct run *run, const char *name, const char *why, ...)
	__printf(3, 4);

/* Records something about the run that is not a number. */
void result_note(struct run *run, const char *name, const char *text);

/*
 * Records that this machine cannot run the experiment, which is no error.
 * Returns the status that the experiment must return.
 */
enum status result_unavailable(struct run *run, const char *why, ...)
	__printf(2, 3);

/* Forgets the results of the last repetition. */
void result_reset(struct run *run);

/* Writes the run as one line of JSON. */
void result_print(const struct run *run, const struct timeline *timeline,
		  FILE *out);

#endif /* RESULT_H */
