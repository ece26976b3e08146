/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The contract between an experiment and the program around it.
 *
 * An experiment is one file in experiments/: a description of itself and one
 * function. It does not know how it is chosen, driven or reported. run.h has
 * what the function may ask about its run, result.h how it reports results.
 */
#ifndef EXPERIMENT_H
#define EXPERIMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))

#define __printf(format, first)	__attribute__((__format__(printf, format, first)))
#define __used			__attribute__((__used__))
#define __section(name)		__attribute__((__section__(name)))
#define noinline		__attribute__((__noinline__))

/* Exit statuses, which are also what an experiment's function returns. */
enum status {
	STATUS_OK = 0,		/* it ran, or this machine cannot run it */
	STATUS_WRONG = 1,	/* a self-check failed: the figures are void */
	STATUS_USAGE = 2,	/* the request cannot be carried out */
};

enum param_type {
	PARAM_CHOICE,		/* one of .words or .choices() */
	PARAM_SIZE,		/* bytes; K, M and G are understood */
	PARAM_COUNT,		/* a plain number */
	PARAM_FLAG,		/* given or not */
	PARAM_PATH,		/* a file */
};

/*
 * A parameter decides what is measured and is part of the result's "params".
 * An option (.option is set) decides how, and is not part of them.
 */
struct param {
	const char *name;
	const char *help;
	enum param_type type;
	const char * const *words;	/* the choices; ends in NULL */
	/* Or: returns the choice at @place, NULL after the last one. */
	const char *(*choices)(size_t place);
	const char *def;	/* NULL: not given, the experiment decides */
	uint64_t min, max;	/* both inclusive; max 0: no bound */
	bool option;
};

struct metric {
	const char *name;
	const char *unit;
	const char *help;
};

struct run;

struct experiment {
	const char *name;
	const char *summary;	/* one line */
	const char *detail;	/* what exactly is done */
	const char *example;	/* arguments that show it */
	const struct param *params;	/* ends in a NULL name */
	const struct metric *metrics;	/* beside those of every region */
	/* Shared by several experiments; by place, as .choices(); or NULL. */
	const struct param *(*shared_params)(size_t place);
	const struct metric *(*shared_metrics)(size_t place);
	enum status (*measure)(struct run *run);
};

/* Adds an experiment to the list: one line in the experiment's file. */
#define EXPERIMENT(symbol)						\
	static const struct experiment * const symbol##_entry		\
	__used __section("ft_experiments") = &(symbol)

/*
 * The list, gathered by the linker from all experiments' files. Only
 * catalogue.c reads it.
 */
extern const struct experiment * const __start_ft_experiments[];
extern const struct experiment * const __stop_ft_experiments[];

#endif /* EXPERIMENT_H */
