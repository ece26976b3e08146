/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The CPUs that an experiment has: as many as --cpus says, the first ones of
 * those that the process may use.
 */
#ifndef CPUS_H
#define CPUS_H

#include <sched.h>

#include "run.h"

/* Keeps this process, and what it starts from now on, to the first --cpus CPUs. */
enum status cpus_keep_to(struct run *run);

/* Keeps the calling thread to the CPU at @place among those it may use. */
void cpus_pin(unsigned int place);

/* An element of struct experiment's params; @what_for ends its help. */
#define CPUS_PARAM(what_for)						\
	{								\
		.name = "cpus", .help = what_for,			\
		.type = PARAM_COUNT, .def = "1", .min = 1, .max = CPU_SETSIZE, \
	}

#endif /* CPUS_H */
