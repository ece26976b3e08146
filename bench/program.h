/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A program as it was installed, run from its start to its end in a region.
 */
#ifndef PROGRAM_H
#define PROGRAM_H

#include "run.h"

struct follower;

struct command {
	const char *root;	/* the directory that it has as its / */
	const char *directory;	/* where it starts, in its root; NULL: wherever */
	char * const *argv;	/* ends in NULL */
	bool look;		/* at its memory before it ends: program_metric() */
	/* Traces it and its children; NULL: nobody does. */
	struct follower *follower;
	/* Without random addresses: they decide what memory is on huge pages. */
	bool fixed;
	const char *input;	/* the file that it reads; NULL: standard input */
	const char *output;	/* the file for what it prints; NULL: standard error */
	/*
	 * Where its status goes, as waitpid(2) has it, after all that it started
	 * has ended; NULL: it has to be 0, and others may go on.
	 */
	int *ended;
};

/*
 * Runs a command, and measures it and its children from start to end. If its
 * root is not the machine's own, it gets its own mount namespace, with /proc,
 * /dev and empty directories for temporary files below the root; only root can
 * do that. Adds the metrics of
 * the region and, if it looks, of program_metric().
 */
enum status program_measure(struct run *run, const struct command *command);

/*
 * The arguments of a shell that runs the script at @path, for .argv. NULL: it
 * cannot be read or is too long, and the request was refused.
 */
char * const *program_script(const struct run *run, const char *path);

/* For the shared ones of struct experiment; the parameter is --root. */
const struct param *program_param(size_t place);
const struct metric *program_metric(size_t place);

#endif /* PROGRAM_H */
