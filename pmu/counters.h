/* SPDX-License-Identifier: GPL-2.0 */
/* Rows of counters, one row per CPU, that generated code can add to without a call. */
#ifndef FT_COUNTERS_H
#define FT_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plugin_api.h"

struct counters {
#if FT_HAS_SCOREBOARD
	struct qemu_plugin_scoreboard *board;
#else
	uint64_t *row;
	size_t length;
#endif
};

/* @length counters for each CPU, all 0. Returns false if out of memory. */
bool counters_init(struct counters *c, size_t length, unsigned int nr_cpus);

/* The row of @cpu, which QEMU has started. */
uint64_t *counters_row(const struct counters *c, unsigned int cpu);

/*
 * While a block is translated: each time @insn starts, add @amount to a counter. Only
 * for a guest of one CPU. Without scoreboards QEMU supports nothing else; with them
 * QEMU 10.0 aborts if several CPUs run in one thread.
 */
void counters_add_inline(const struct counters *c, struct qemu_plugin_insn *insn,
			 size_t number, uint64_t amount);

#endif
