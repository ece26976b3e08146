/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The geometry of a data cache as the kernel reports it.
 */
#ifndef GEOMETRY_H
#define GEOMETRY_H

#include <stddef.h>
#include <stdint.h>

#include "run.h"

struct geometry {
	uint64_t ways;
	uint64_t way_size;	/* bytes: the whole divided by the ways */
};

/* The choices of --level: l1d, l2. */
const char *geometry_level(size_t place);

/*
 * Reads --level, --ways and --way_size of the run. What was not given comes
 * from the sysfs of the CPU that this runs on, and becomes the value of the
 * run's parameter.
 */
enum status geometry_of_run(struct run *run, struct geometry *geometry);

#endif /* GEOMETRY_H */
