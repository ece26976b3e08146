/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The contract between an experiment and the program around it.
 *
 * An experiment is one file in experiments/: a description of itself and one
 * function. It does not know how it is chosen, driven or reported.
 */
#ifndef FTBENCH_H
#define FTBENCH_H

#include <stdbool.h>
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
	PARAM_CHOICE,		/* one of .choices */
	PARAM_SIZE,		/* bytes; K, M and G are understood */
	PARAM_COUNT,		/* a plain number */
	PARAM_FLAG,		/* given or not */
	PARAM_PATH,		/* a file */
};

/*
 * A parameter decides what is measured and stands in the result's "params".
 * An option decides how (.option is set) and does not stand there.
 */
struct param {
	const char *name;
	const char *help;
	enum param_type type;
	const char * const *choices;	/* ends in NULL */
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
	/* Those of several experiments, from a file of their own; or NULL. */
	const struct param *shared_params;
	const struct metric *shared_metrics;
	enum status (*measure)(struct run *run);
};

/* Enters an experiment into the list: one line in the experiment's file. */
#define EXPERIMENT(symbol)						\
	static const struct experiment * const symbol##_entry		\
	__used __section("ft_experiments") = &(symbol)

/* The list, gathered by the linker from all experiments' files. */
extern const struct experiment * const __start_ft_experiments[];
extern const struct experiment * const __stop_ft_experiments[];

/* The value of a parameter of this run, by the name in struct param. */
uint64_t param_number(const struct run *run, const char *name);
const char *param_text(const struct run *run, const char *name);
bool param_given(const struct run *run, const char *name);

/* Fills in a parameter that was not given: it is reported as if it was. */
void param_decide(struct run *run, const char *name, uint64_t number);

/* Records what was measured. The name must stand in a struct metric. */
void result_add(struct run *run, const char *name, uint64_t value);

/* Records that a metric could not be measured, and why. */
void result_absent(struct run *run, const char *name, const char *why, ...)
	__printf(3, 4);

/* Records something about the run that is not a number. */
void result_note(struct run *run, const char *name, const char *text);

/*
 * Three ways not to have a result; each returns the status to hand back.
 * result_unavailable: this machine cannot do it, which is no error.
 * wrong: a self-check failed. refuse: the user must change the request;
 * one sentence that says what to change.
 */
enum status result_unavailable(struct run *run, const char *why, ...)
	__printf(2, 3);
enum status wrong(const struct run *run, const char *what, ...)
	__printf(2, 3);
enum status refuse(const struct run *run, const char *what, ...)
	__printf(2, 3);

#endif /* FTBENCH_H */
