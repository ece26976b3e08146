/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The anonymous memory of a program and its children at their ends: how many
 * pages are resident, and how many of them hold nothing but zeroes.
 */
#ifndef ANON_H
#define ANON_H

#include <stdint.h>
#include <sys/types.h>

struct anon {
	uint64_t pages;		/* resident */
	uint64_t zero_pages;	/* of these; the zero page itself is not one */
	const char *why;	/* they are not known; NULL: they are */
};

/*
 * Continues a child that has stopped for ptrace(2), traces it and all that it
 * starts, and sums up the memory of each process as its last thread ends. A page
 * that processes share counts once for each. Memory that a process gave back,
 * or replaced by execve(2), is not seen. Returns when all have ended: the status
 * of the child, or -1 if it cannot be waited for.
 */
int anon_follow(pid_t child, struct anon *anon);

#endif /* ANON_H */
