/* SPDX-License-Identifier: GPL-2.0 */
/* The instructions at the program counters of faults, read while the process has them. */
#ifndef CODE_H
#define CODE_H

#include <stdint.h>
#include <sys/types.h>

#include "output.h"

struct code {
	/* Hashes of the program counters seen; 0 is a free place. */
	uint64_t *seen;
	size_t used;
};

bool code_open(struct code *code);

/* Writes the code at `ip` of a process, if it is the first time. */
void code_see(struct code *code, struct output *output, pid_t pid, uint64_t ip);

#endif
