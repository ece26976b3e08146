/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Counts instructions without a call for each.
 *
 * A translation block is divided into pieces. When the counter of a piece is
 * increased, all of the piece has run or cannot fail:
 *  - for an instruction that may abort, a new piece begins at the instruction after
 *    it, where it is known to have completed;
 *  - every other instruction belongs to the current piece, and is counted before it
 *    runs, since it cannot fail.
 * So each piece has at most one access to memory. Pieces with the same privilege,
 * length and kind of access share a counter. That makes few counters, which
 * generated code increases inline.
 *
 * The last instruction of a block has none after it. If it is a load or store of
 * one register, the call for its access counts it. With icount, QEMU repeats an
 * access to a device as a block of one instruction, and makes only this call again;
 * the count is right then, too. A pair, an atomic or a vector access at the end of
 * a block is counted when it starts, so it is counted again if it aborts.
 */
#ifndef FT_TALLY_H
#define FT_TALLY_H

#include <stdbool.h>
#include <stdint.h>

#include "counters.h"
#include "counts.h"
#include "functions.h"
#include "hierarchy.h"
#include "plugin_api.h"
#include "userdata.h"

enum tally_access {
	TALLY_NONE, TALLY_LOAD, TALLY_STORE, TALLY_LOAD_STORE, TALLY_DC_ZVA,
	NR_TALLY_ACCESSES
};

#define TALLY_MAX_INSNS	63
#define NR_TALLIES	(NR_PRIVS * NR_TALLY_ACCESSES * (TALLY_MAX_INSNS + 1))

/* The rows of all CPUs. With functions, the kernel's pieces are counted there instead. */
struct tallies {
	unsigned int nr_cpus;
	struct counters counters;
	struct functions functions;
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
	unsigned int function;	/* FUNCTION_USER without functions */
	enum tally_access access;
	bool atomic;
	unsigned int insns;
};

/* Returns false if out of memory. */
bool tally_init(struct tallies *t, unsigned int nr_cpus);
/* @piece has a pointer to its tallies, and its function. */
void tally_open(struct tally_piece *piece, struct qemu_plugin_insn *head,
		enum tally_means means, enum privilege priv);
/* Counts one more instruction, which cannot abort before the piece is counted. */
void tally_plain(struct tally_piece *piece);
void tally_close(struct tally_piece *piece);

/* Adds to @counts what CPU @cpu has executed so far. */
void tally_gather(const struct tallies *t, unsigned int cpu,
		  struct counts *counts);

#endif
