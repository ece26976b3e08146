// SPDX-License-Identifier: GPL-2.0
#include "tally.h"

#include <stdlib.h>

_Static_assert(NR_TALLIES <= USERDATA_NUMBERS, "a tally has no number in userdata");

bool tally_init(struct tallies *t, unsigned int nr_cpus)
{
	t->nr_cpus = nr_cpus;
#if FT_HAS_SCOREBOARD
	t->board = qemu_plugin_scoreboard_new(sizeof(struct tally_row));
	return t->board;
#else
	t->row = calloc(nr_cpus, sizeof(*t->row));
	return t->row;
#endif
}

static struct tally_row *row_of(const struct tallies *t, unsigned int cpu)
{
#if FT_HAS_SCOREBOARD
	return qemu_plugin_scoreboard_find(t->board, cpu);
#else
	return &t->row[cpu];
#endif
}

static unsigned int tally_number(const struct tally_piece *piece)
{
	return (piece->priv * NR_TALLY_ACCESSES + piece->access) * (TALLY_MAX_INSNS + 1) +
	       piece->insns;
}

static void add_by_call(unsigned int cpu, void *udata)
{
	row_of(userdata_context(udata), cpu)->n[userdata_number(udata)]++;
}

static void add_by_access(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t va,
			  void *udata)
{
	(void)info;
	(void)va;
	add_by_call(cpu, udata);
}

void tally_open(struct tally_piece *piece, struct qemu_plugin_insn *head,
		enum tally_means means, enum privilege priv)
{
	piece->head = head;
	piece->means = means;
	piece->priv = priv;
	piece->access = TALLY_NONE;
	piece->insns = 0;
}

/*
 * Inline for one CPU only. Without scoreboards QEMU supports nothing else; with them
 * QEMU 10.0 aborts if several CPUs run in one thread.
 */
static void add_inline(struct tallies *t, struct qemu_plugin_insn *head,
		       unsigned int number)
{
#if FT_HAS_SCOREBOARD
	qemu_plugin_u64 counter = {
		.score = t->board,
		.offset = number * sizeof(uint64_t),
	};
#endif

	if (t->nr_cpus > 1) {
		qemu_plugin_register_vcpu_insn_exec_cb(head, add_by_call,
						       QEMU_PLUGIN_CB_NO_REGS,
						       userdata(t, number));
		return;
	}
#if FT_HAS_SCOREBOARD
	qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(
		head, QEMU_PLUGIN_INLINE_ADD_U64, counter, 1);
#else
	qemu_plugin_register_vcpu_insn_exec_inline(
		head, QEMU_PLUGIN_INLINE_ADD_U64, &t->row->n[number], 1);
#endif
}

void tally_close(struct tally_piece *piece)
{
	unsigned int number = tally_number(piece);

	if (!piece->insns)
		return;
	switch (piece->means) {
	case TALLY_INLINE:
		add_inline(piece->tallies, piece->head, number);
		break;
	case TALLY_CALL:
		qemu_plugin_register_vcpu_insn_exec_cb(piece->head, add_by_call,
						       QEMU_PLUGIN_CB_NO_REGS,
						       userdata(piece->tallies, number));
		break;
	case TALLY_ACCESS:
		qemu_plugin_register_vcpu_mem_cb(piece->head, add_by_access,
						 QEMU_PLUGIN_CB_NO_REGS,
						 QEMU_PLUGIN_MEM_RW,
						 userdata(piece->tallies, number));
		break;
	}
	piece->insns = 0;
	piece->access = TALLY_NONE;
}

void tally_plain(struct tally_piece *piece)
{
	if (piece->insns == TALLY_MAX_INSNS)
		tally_close(piece);
	piece->insns++;
}

void tally_gather(const struct tallies *t, unsigned int cpu, struct counts *counts)
{
	const struct tally_row *row = row_of(t, cpu);

	for (unsigned int number = 0; number < NR_TALLIES; number++) {
		unsigned int insns = number % (TALLY_MAX_INSNS + 1);
		enum tally_access access = number / (TALLY_MAX_INSNS + 1) % NR_TALLY_ACCESSES;
		enum privilege priv = number / (TALLY_MAX_INSNS + 1) / NR_TALLY_ACCESSES;
		uint64_t *event = counts->event[priv];

		event[EV_INSTRUCTIONS] += row->n[number] * insns;
		if (access == TALLY_LOAD || access == TALLY_LOAD_STORE)
			event[EV_LOADS] += row->n[number];
		if (access == TALLY_STORE || access == TALLY_LOAD_STORE)
			event[EV_STORES] += row->n[number];
		if (access == TALLY_DC_ZVA)
			event[EV_DC_ZVA] += row->n[number];
	}
}
