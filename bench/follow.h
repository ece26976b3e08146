/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Traces a program and all that it starts with ptrace(2), to the end of the last one.
 */
#ifndef FOLLOW_H
#define FOLLOW_H

#include <stddef.h>
#include <sys/types.h>

struct task;

/* A user of this embeds it, with one of the calls. */
struct follower {
	/*
	 * The last task that has its memory is about to end. @id is of a thread
	 * that has it still: the first one may have ended. NULL: nobody asks.
	 */
	void (*leaves)(struct follower *follower, pid_t id);
	/* A task has ended, and /proc/ID is there still. NULL: nobody asks. */
	void (*ended)(struct follower *follower, pid_t id);
	const char *why;	/* something was missed; NULL: nothing was */

	struct task *tasks;	/* follow()'s own, as the next two */
	size_t nr, room;
};

/*
 * Continues a child that has stopped for ptrace(2). Returns when it and all that
 * it started have ended: the child's status, or -1 if it cannot be waited for.
 */
int follow(struct follower *follower, pid_t child);

#endif /* FOLLOW_H */
