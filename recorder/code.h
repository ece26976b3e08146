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
	/* Executions whose records wait in the rings. */
	uint32_t execs[PROCESSES];
};

/* How records of commands, mappings and new processes begin. */
struct code_change {
	struct perf_event_header header;
	uint32_t pid, parent;
};

bool code_open(struct code *code);

/* Takes a record that waits in a ring, each once. */
void code_expect(struct code *code, const struct code_change *record);

/* Takes a record that waited, when its turn comes: another program, or other code of one. */
void code_follow(struct code *code, const struct code_change *record);

/*
 * Reads the code at `ip` of a process, and tells so, if it is the first time since a change.
 * What cannot be read has length 0.
 */
bool code_see(struct code *code, struct ft_code *record, pid_t pid, uint64_t ip);

/*
 * Tells whether the code just read may be that of the program which the process executes next:
 * the kernel writes the record of that before it maps the new program. All that waits is expected.
 */
bool code_is_of_next(struct code *code, pid_t pid);

#endif
