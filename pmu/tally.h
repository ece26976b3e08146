/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Counting instructions without a call for each.
 *
 * A translation block is cut into pieces, such that all of a piece has run
 * whenever its counter is added to:
 *  - an instruction that may abort opens a piece with the instruction after it,
 *    where it is known to have completed;
 *  - every other instruction belongs to the piece that is open, and is counted
 *    before it runs, since it cannot fail.
 * So each piece holds at most one access to memory, and pieces that have the same
 * privilege, length and kind of access can share a counter. That makes few
 * counters, which generated code adds to in line.
 *
 * The last instruction of a block has none after it. If it is a load or store of
 * one register, the call for its access counts it. That also holds when QEMU with
 * icount runs an access to a device again, as a block of one: it then makes no
 * other calls, for it made them before. What is left is a pair, an atomic or a
 * vector at the end of a block: it is counted when it starts, and so once more if
 * it aborts.
 */
#ifndef FT_TALLY_H
#define FT_TALLY_H

#include <stdbool.h>
#include <stdint.h>

#include "counts.h"
#include "hierarchy.h"
#include "plugin_api.h"
#include "userdata.h"

enum tally_access {
	TALLY_NONE, TALLY_LOAD, TALLY_STORE, TALLY_LOAD_STORE, TALLY_DC_ZVA,
	NR_TALLY_ACCESSES
};

#define TALLY_MAX_INSNS	63
#define NR_TALLIES	(NR_PRIVS * NR_TALLY_ACCESSES * (TALLY_MAX_INSNS + 1))

struct tally_row {
	uint64_t n[NR_TALLIES];
};

/* The rows of all CPUs. */
struct tallies {
	unsigned int nr_cpus;
#if FT_HAS_SCOREBOARD
	struct qemu_plugin_scoreboard *board;
#else
	struct tally_row *row;
#endif
} USERDATA_CONTEXT;

/* How a piece is counted. */
enum tally_means {
	TALLY_INLINE,		/* by generated code, when head starts */
	TALLY_CALL,		/* by a call, in order with other calls at head */
	TALLY_ACCESS,		/* by the call for head's one access to memory */
};

/* The piece that is open while a block is translated. */
struct tally_piece {
	struct tallies *tallies;
	struct qemu_plugin_insn *head;
	enum tally_means means;
	enum privilege priv;
	enum tally_access access;
	unsigned int insns;
};

/* Returns false when memory is short. */
bool tally_init(struct tallies *t, unsigned int nr_cpus);
/* @piece knows its tallies. */
void tally_open(struct tally_piece *piece, struct qemu_plugin_insn *head,
		enum tally_means means, enum privilege priv);
/* Counts one more instruction, which cannot abort before the piece is counted. */
void tally_plain(struct tally_piece *piece);
void tally_close(struct tally_piece *piece);

/* Adds to @counts what CPU @cpu has executed so far. */
void tally_gather(const struct tallies *t, unsigned int cpu,
		  struct counts *counts);

#endif
