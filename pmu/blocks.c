// SPDX-License-Identifier: GPL-2.0
#include "blocks.h"

#include <string.h>

#include "access.h"
#include "decode.h"
#include "events.h"
#include "hierarchy.h"
#include "tally.h"

static uint32_t opcode(const struct qemu_plugin_insn *insn)
{
	uint32_t op = 0;

#if FT_API >= 3
	qemu_plugin_insn_data(insn, &op, sizeof(op));
#else
	memcpy(&op, qemu_plugin_insn_data(insn), sizeof(op));
#endif
	return op;
}

/* The kernel has the upper half of the addresses (TTBR1_EL1). */
static enum privilege privilege_at(uint64_t pc)
{
	return pc >> 55 & 1 ? PRIV_KERNEL : PRIV_USER;
}

/* Requests calls for instructions that are counted singly, and for accesses. */
static void watch_insn(const struct blocks *b, struct qemu_plugin_insn *insn,
		       struct qemu_plugin_insn *next, enum insn_kind kind,
		       uint32_t op, enum privilege priv)
{
	switch (kind) {
	case INSN_LOAD:
	case INSN_STORE:
	case INSN_LOAD_STORE:
	case INSN_EXCLUSIVE_STORE:
		access_watch(b->pmu, insn, kind, op, priv);
		break;
	case INSN_TLBI:
	case INSN_DSB:
	case INSN_ISB:
	case INSN_ERET:
	case INSN_MMU_WRITE:
		events_watch(b->pmu, insn, kind, op, priv);
		break;
	case INSN_REGION_BEGIN:
	case INSN_REGION_END:
		regions_watch(b->regions, insn, kind, priv);
		break;
	case INSN_DC_ZVA:
#if FT_HAS_REGISTERS
		zva_watch(b->zva, next ? next : insn, insn_rt(op), priv);
#else
		(void)next;
#endif
		break;
	case INSN_SVC:
#if !FT_HAS_DISCON
		exceptions_watch_svc(b->exceptions, insn);
#endif
		break;
	case INSN_PLAIN:
	case INSN_DC_IC:
	case INSN_VBAR_WRITE:
		break;
	}
}

static enum tally_access tally_access_of(enum insn_kind kind)
{
	switch (kind) {
	case INSN_LOAD:
		return TALLY_LOAD;
	case INSN_STORE:
	case INSN_EXCLUSIVE_STORE:
		return TALLY_STORE;
	case INSN_LOAD_STORE:
		return TALLY_LOAD_STORE;
	case INSN_DC_ZVA:
		return TALLY_DC_ZVA;
	default:
		return TALLY_NONE;
	}
}

static bool is_marker(enum insn_kind kind)
{
	return kind == INSN_REGION_BEGIN || kind == INSN_REGION_END;
}

/* A piece that begins with a marker is counted before the marker reads counts. */
static enum tally_means means_before(enum insn_kind kind)
{
	return is_marker(kind) ? TALLY_CALL : TALLY_INLINE;
}

/*
 * An instruction that may abort is counted with the instruction after it. If there
 * is none, it is counted at its access, if it makes only one.
 */
static void open_after(struct tally_piece *piece, struct qemu_plugin_insn *insn,
		       enum insn_kind kind, uint32_t op,
		       struct qemu_plugin_insn *next, enum insn_kind next_kind)
{
	bool one_access = (kind == INSN_LOAD || kind == INSN_STORE) &&
		insn_access_limit(op) < 16;

	if (next)
		tally_open(piece, next, means_before(next_kind), piece->priv);
	else
		tally_open(piece, insn, one_access ? TALLY_ACCESS : TALLY_INLINE,
			   piece->priv);
}

void blocks_translate(const struct blocks *b, struct qemu_plugin_tb *tb)
{
	size_t n = qemu_plugin_tb_n_insns(tb);
	enum privilege priv = privilege_at(qemu_plugin_tb_vaddr(tb));
	struct known_regs regs = { .known = 0 };
	uint64_t line = UINT64_MAX;
	struct tally_piece piece = { .tallies = &b->pmu->tallies };
	struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, 0);
	struct qemu_plugin_insn *next;
	enum insn_kind kind, next_kind;
	uint32_t op, next_op;

#if !FT_HAS_DISCON
	exceptions_watch_block(tb);
#endif
	op = opcode(insn);
	kind = insn_kind(op);
	tally_open(&piece, insn, means_before(kind), priv);
	for (size_t i = 0; i < n; i++, insn = next, op = next_op, kind = next_kind) {
		next = i + 1 < n ? qemu_plugin_tb_get_insn(tb, i + 1) : NULL;
		next_op = next ? opcode(next) : 0;
		next_kind = insn_kind(next_op);

		access_watch_fetch(b->pmu, insn, &line, priv);
		if (is_marker(kind)) {
			/* Its own call counts it; the next piece begins after it. */
			tally_close(&piece);
			tally_open(&piece, next, means_before(next_kind), priv);
		} else if (insn_may_abort(kind)) {
			tally_close(&piece);
			open_after(&piece, insn, kind, op, next, next_kind);
			piece.access = tally_access_of(kind);
			tally_plain(&piece);
		} else {
			tally_plain(&piece);
		}
		watch_insn(b, insn, next, kind, op, priv);
#if !FT_HAS_DISCON
		if (kind == INSN_VBAR_WRITE && regs.known >> insn_rt(op) & 1)
			exceptions_learn_vectors(b->exceptions, regs.value[insn_rt(op)]);
#endif
		known_regs_step(&regs, op, qemu_plugin_insn_vaddr(insn));
	}
	tally_close(&piece);
}
