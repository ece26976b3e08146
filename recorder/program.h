/* SPDX-License-Identifier: GPL-2.0 */
/* The traced program: started here, or a process that runs already. */
#ifndef PROGRAM_H
#define PROGRAM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "format.h"

/* Signals that are passed on. */
#define PASSED_ON	6

struct program {
	pid_t pid;
	/* Who started the recorder. */
	pid_t parent;
	/* When a signal came last, from the parent (0: none waits) and from others. */
	uint64_t sent[PASSED_ON], seen[PASSED_ON];
	/* Not ours: only watched. */
	bool attached;
	bool ended;
	/* Without huge pages; of a program that is started here. */
	bool base_pages;
	/* As from waitpid(2); -1 until it ends, and of one that is only watched. */
	int status;
	/* Readable when a process that is only watched ends; or else -1. */
	int pidfd;
	/* Closed to let the child execute the program, and the answer. */
	int go, failed;
	/* Faults of the child before it executed the program. */
	uint64_t minor_before, major_before;
};

/*
 * Forks a child that waits before it executes `argv`, with the directory `root`
 * as its / and a fixed environment unless that is NULL. The signals of
 * program_signals() must be blocked. False with errno.
 */
bool program_fork(struct program *program, const char *root,
		  char * const argv[]);

/* Executes the program: 0, or the errno of execvp(). */
int program_exec(struct program *program);

bool program_attach(struct program *program, pid_t pid);

/* A signalfd of SIGCHLD and all signals that are passed on; blocks them. */
int program_signals(void);

/*
 * Serves what came over the signalfd; true if the recording is to end. While
 * program_waits() there is more to do some milliseconds later.
 */
bool program_signalled(struct program *program, int signals);
bool program_waits(const struct program *program);

/* What getrusage tells of the program and what it waited for; faults since exec. */
void program_used(const struct program *program, struct ft_end *end);

#endif
