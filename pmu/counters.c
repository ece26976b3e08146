// SPDX-License-Identifier: GPL-2.0
#include "counters.h"

#include <stdlib.h>

bool counters_init(struct counters *c, size_t length, unsigned int nr_cpus)
{
#if FT_HAS_SCOREBOARD
	(void)nr_cpus;
	c->board = qemu_plugin_scoreboard_new(length * sizeof(uint64_t));
	return c->board;
#else
	c->length = length;
	c->row = calloc(nr_cpus * length, sizeof(*c->row));
	return c->row;
#endif
}

uint64_t *counters_row(const struct counters *c, unsigned int cpu)
{
#if FT_HAS_SCOREBOARD
	return qemu_plugin_scoreboard_find(c->board, cpu);
#else
	return c->row + cpu * c->length;
#endif
}

void counters_add_inline(const struct counters *c, struct qemu_plugin_insn *insn,
			 size_t number, uint64_t amount)
{
#if FT_HAS_SCOREBOARD
	qemu_plugin_u64 counter = {
		.score = c->board,
		.offset = number * sizeof(uint64_t),
	};

	qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(
		insn, QEMU_PLUGIN_INLINE_ADD_U64, counter, amount);
#else
	qemu_plugin_register_vcpu_insn_exec_inline(
		insn, QEMU_PLUGIN_INLINE_ADD_U64, c->row + number, amount);
#endif
}
