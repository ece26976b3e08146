/* SPDX-License-Identifier: GPL-2.0 */
/* Why perf_event_open(2) failed, and what to do. */
#ifndef FAILURE_H
#define FAILURE_H

#include <stddef.h>
#include <sys/types.h>

/* Writes a sentence for an errno; of events of process `pid`, or of a command if 0. */
void failure_explain(int error, pid_t pid, char *sentence, size_t size);

#endif
