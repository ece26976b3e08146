/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What comes out of a run: metrics, those that are absent and why, and the
 * line of JSON that carries both.
 */
#ifndef RESULT_H
#define RESULT_H

#include <stdint.h>
#include <stdio.h>

#include "run.h"
#include "timeline.h"

/* Records what was measured. The name must stand in a struct metric. */
void result_add(struct run *run, const char *name, uint64_t value);

/* Records that a metric could not be measured, and why. */
void result_absent(struct run *run, const char *name, const char *why, ...)
	__printf(3, 4);

/* Records something about the run that is not a number. */
void result_note(struct run *run, const char *name, const char *text);

/*
 * Records that this machine cannot do it, which is no error: returns the status
 * to hand back.
 */
enum status result_unavailable(struct run *run, const char *why, ...)
	__printf(2, 3);

/* Forgets the results of the last repetition. */
void result_reset(struct run *run);

/* Writes the run as one line of JSON. */
void result_print(const struct run *run, const struct timeline *timeline,
		  FILE *out);

#endif /* RESULT_H */
