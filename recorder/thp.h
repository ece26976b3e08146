/* SPDX-License-Identifier: GPL-2.0 */
/* Which processes forbid huge pages for themselves: prctl(PR_SET_THP_DISABLE). */
#ifndef THP_H
#define THP_H

#include <stdint.h>
#include <sys/types.h>

#include "code.h"
#include "output.h"

/* The processes that were looked at; those whose ids are alike are looked at more often. */
struct thp {
	struct {
		pid_t pid;
		/* When, as CLOCK_MONOTONIC has it, in ns. */
		uint64_t time;
		bool forbidden;
	} process[PROCESSES];
};

/*
 * Looks at a process that had a fault, and writes FT_NO_THP the first time that the
 * process is found to forbid huge pages. `time` is that of the fault, `now` about the present.
 */
void thp_look(struct thp *thp, pid_t pid, uint64_t time, uint64_t now,
	      struct output *output);

#endif
