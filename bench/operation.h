/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The shape of experiments that measure one of several operations: prepare,
 * the operation, clean up. All is done once with less memory before, so that no
 * first call is measured. An experiment without area_param() has no memory.
 */
#ifndef OPERATION_H
#define OPERATION_H

#include <stdint.h>

#include "area.h"
#include "run.h"

struct operation {
	const char *name;
	/* Returns NULL, or why this machine cannot do it. May be NULL. */
	const char *(*prepare)(struct area *area);
	/* What is measured. How many operations it was, or a negative errno. */
	int64_t (*act)(struct area *area);
};

/* The parameter; operation_name() is the file's .choices function. */
#define OPERATION_PARAM(first)						\
	{								\
		.name = "operation", .help = "that is measured",	\
		.type = PARAM_CHOICE, .choices = operation_name, .def = first, \
	}

/* The metric, of each such experiment. */
#define OPERATIONS_METRIC						\
	{ "operations", "operations", "that were measured" }

/*
 * Measures that of @operations (ends in a NULL name) which the run asks for.
 * @finish undoes what area_put() does not; it may be NULL.
 */
enum status operation_measure(struct run *run,
			      const struct operation *operations,
			      void (*finish)(struct area *area));

/* The same with memory that @map maps, as memory_map() does; @finish unmaps it. */
enum status operation_measure_in(struct run *run,
				 const struct operation *operations,
				 area_map map,
				 void (*finish)(struct area *area));

#endif /* OPERATION_H */
