// SPDX-License-Identifier: GPL-2.0
/* Each block that QEMU translates: what is to be called for, and counted. */
#include <string.h>

#include "callbacks.h"
#include "decode.h"
#include "pmu.h"
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

/* Calls for the instructions that are counted one by one, and for accesses. */
static void watch_insn(struct qemu_plugin_insn *insn, enum insn_kind kind,
		       uint32_t op, enum privilege priv)
{
	qemu_plugin_vcpu_udata_cb_t cb = NULL;
	qemu_plugin_vcpu_mem_cb_t on_memory = NULL;

	switch (kind) {
	case INSN_LOAD:
		on_memory = on_load;
		break;
	case INSN_STORE:
		on_memory = on_store;
		break;
	case INSN_LOAD_STORE:
	case INSN_EXCLUSIVE_STORE:
		on_memory = on_load_or_store;
		break;
	case INSN_TLBI:
		cb = on_tlbi;
		break;
	case INSN_DSB:
		cb = on_dsb;
		break;
	case INSN_ISB:
		cb = on_isb;
		break;
	case INSN_ERET:
		cb = on_eret;
		break;
	case INSN_MMU_WRITE:
		cb = on_mmu_write;
		break;
	case INSN_SVC:
#if !FT_HAS_DISCON
		cb = on_svc;
#endif
		break;
	case INSN_REGION_BEGIN:
		cb = on_region_begin;
		break;
	case INSN_REGION_END:
		cb = on_region_end;
		break;
	case INSN_PLAIN:
	case INSN_DC_ZVA:
	case INSN_DC_IC:
	case INSN_VBAR_WRITE:
		break;
	}
	if (cb)
		qemu_plugin_register_vcpu_insn_exec_cb(insn, cb, QEMU_PLUGIN_CB_NO_REGS,
						       pack_insn(op, priv));
	if (on_memory && the_pmu.has_l1d)
		qemu_plugin_register_vcpu_mem_cb(insn, on_memory, QEMU_PLUGIN_CB_NO_REGS,
						 QEMU_PLUGIN_MEM_RW,
						 pack_access(insn_access_limit(op), priv));
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

/* A piece that opens with a marker is counted before the marker looks. */
static enum tally_means means_before(enum insn_kind kind)
{
	return is_marker(kind) ? TALLY_CALL : TALLY_INLINE;
}

/*
 * An instruction that may abort is counted with the one after it, where there is
 * one, and else when it makes its access, where it makes just one.
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

/*
 * One access of the L1I for every line that a block's instructions come from: a
 * call before the first of each.
 */
static void watch_fetch(struct qemu_plugin_insn *insn, uint64_t *last_line,
			enum privilege priv)
{
	uint64_t host = (uintptr_t)qemu_plugin_insn_haddr(insn);
	uint64_t va = qemu_plugin_insn_vaddr(insn);
	uint64_t line = va & ~the_pmu.line_mask;

	if (line == *last_line)
		return;
	*last_line = line;
	pmu_lock(&the_pmu);
	code_pages_executed(&the_pmu.code, generation(&the_pmu), va, host);
#if FT_HAS_TRANSLATE
	uint64_t pa;

	if (qemu_plugin_translate_vaddr(va, &pa))
		code_pages_read(&the_pmu.code, generation(&the_pmu), va, pa);
#endif
	pmu_unlock(&the_pmu);
	qemu_plugin_register_vcpu_insn_exec_cb(insn, on_fetch, QEMU_PLUGIN_CB_NO_REGS,
					       (void *)(uintptr_t)(host | priv));
}

void translate_block(struct qemu_plugin_tb *tb)
{
	size_t n = qemu_plugin_tb_n_insns(tb);
	enum privilege priv = privilege_at(qemu_plugin_tb_vaddr(tb));
	struct known_regs regs = { .known = 0 };
	uint64_t line = UINT64_MAX;
	struct tally_piece piece;
	struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, 0);
	struct qemu_plugin_insn *next;
	enum insn_kind kind, next_kind;
	uint32_t op, next_op;

#if !FT_HAS_DISCON
	watch_exceptions(tb);
#endif
	op = opcode(insn);
	kind = insn_kind(op);
	tally_open(&piece, insn, means_before(kind), priv);
	for (size_t i = 0; i < n; i++, insn = next, op = next_op, kind = next_kind) {
		next = i + 1 < n ? qemu_plugin_tb_get_insn(tb, i + 1) : NULL;
		next_op = next ? opcode(next) : 0;
		next_kind = insn_kind(next_op);

		if (the_pmu.has_l1i)
			watch_fetch(insn, &line, priv);
		if (is_marker(kind)) {
			/* It counts itself; what follows is counted after it. */
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
		watch_insn(insn, kind, op, priv);
#if FT_HAS_REGISTERS
		if (kind == INSN_DC_ZVA && the_pmu.has_l1d)
			qemu_plugin_register_vcpu_insn_exec_cb(next ? next : insn, on_zva,
							       QEMU_PLUGIN_CB_R_REGS,
							       pack_insn(op, priv));
#endif
#if !FT_HAS_DISCON
		if (kind == INSN_VBAR_WRITE && regs.known >> insn_rt(op) & 1)
			learn_vectors(&the_pmu, regs.value[insn_rt(op)]);
#endif
		known_regs_step(&regs, op, qemu_plugin_insn_vaddr(insn));
	}
	tally_close(&piece);
}
