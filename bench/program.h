/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A program as it was installed, run from its start to its end in a region.
 */
#ifndef PROGRAM_H
#define PROGRAM_H

#include "run.h"

/*
 * Runs @argv (ends in NULL) with the directory @root as its /, and measures it
 * and its children from start to end. If @root is not the machine's own root,
 * the program gets its own mount namespace, with /proc, /dev and empty
 * directories for temporary files below @root; only root can do that. Its
 * standard output goes to its standard error. Adds the metrics of the region
 * and of program_metric().
 */
enum status program_measure(struct run *run, const char *root,
			    char * const argv[]);

/* For the shared ones of struct experiment; the parameter is --root. */
const struct param *program_param(size_t place);
const struct metric *program_metric(size_t place);

#endif /* PROGRAM_H */
