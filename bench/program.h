/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A program as it was installed, run from its start to its end in a region.
 */
#ifndef PROGRAM_H
#define PROGRAM_H

#include "run.h"

/*
 * Runs @argv (ends in NULL) with the directory @root as its /, and measures all
 * of its life and of its children's. Where @root is not the machine's own, the
 * program sees /proc, /dev and empty places for temporary files below it, in a
 * mount namespace of its own: root only. Its standard output goes where its
 * errors go. Adds the region's metrics and
 * program_metric()'s.
 */
enum status program_measure(struct run *run, const char *root,
			    char * const argv[]);

/* For struct experiment's shared ones; the parameter is --root. */
const struct param *program_param(size_t place);
const struct metric *program_metric(size_t place);

#endif /* PROGRAM_H */
