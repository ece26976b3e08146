/* SPDX-License-Identifier: GPL-2.0 */
/* The instructions at the program counters of faults, read while the process has them. */
#ifndef CODE_H
#define CODE_H

#include <stdint.h>
#include <sys/types.h>

#include "output.h"

/* Those whose ids are alike share a count of changes: some code is read twice. */
#define PROCESSES	4096

struct code {
	/* Hashes of the program counters seen; 0 is a free place. */
	uint64_t *seen;
	size_t used;
	uint32_t changes[PROCESSES];
};

bool code_open(struct code *code);

/* Follows the kernel's records of processes that begin, execute or map other code. */
void code_follow(struct code *code, const struct perf_event_header *record);

/* Writes the code at `ip` of a process, and tells so, if it is the first time since a change. */
bool code_see(struct code *code, struct output *output, pid_t pid, uint64_t ip);

#endif
