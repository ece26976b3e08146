/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The anonymous memory of a program and its children at their ends: how many
 * pages are resident, and how many of them hold nothing but zeroes.
 */
#ifndef ANON_H
#define ANON_H

#include <stdint.h>

#include "follow.h"

/*
 * Sums up the memory of each process as its last thread ends. A page that
 * processes share counts once for each. Memory that a process gave back, or
 * replaced by execve(2), is not seen. Unknown if the follower missed something.
 */
struct anon {
	struct follower follower;	/* first */
	uint64_t pages;		/* resident */
	uint64_t zero_pages;	/* of these; the zero page itself is not one */
	void *page;		/* room for one */
};

/* For .follower of a command; free .page afterwards. */
void anon_init(struct anon *anon);

#endif /* ANON_H */
