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
	case INSN_IPI:
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
		events_watch(b->pmu, insn, kind, op, priv);
#if !FT_HAS_DISCON
		exceptions_watch_svc(b->exceptions, insn);
#endif
		break;
	case INSN_PLAIN:
	case INSN_CALL:
	case INSN_RETURN:
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

/* An instruction of a block. */
struct step {
	struct qemu_plugin_insn *insn;	/* NULL behind the last one */
	uint32_t op;
	enum insn_kind kind;
	uint64_t address;		/* in System.map, of the kernel's */
	unsigned int function;		/* FUNCTION_USER if functions are not counted */
};

static struct step step_at(const struct blocks *b, struct qemu_plugin_tb *tb, size_t i,
			   enum privilege priv)
{
	const struct functions *f = &b->pmu->tallies.functions;
	struct step step = { .function = FUNCTION_USER };

	if (i == qemu_plugin_tb_n_insns(tb))
		return step;
	step.insn = qemu_plugin_tb_get_insn(tb, i);
	step.op = opcode(step.insn);
	step.kind = insn_kind(step.op);
	if (functions_wanted(f) && priv == PRIV_KERNEL) {
		step.address = functions_address(f, step.insn);
		step.function = functions_find(f, step.address);
	}
	return step;
}

/*
 * A piece that begins with one of these is counted by a call, in order with the call
 * of the instruction that reads counts: a marker, and with functions an ERET and the
 * first instruction of another function.
 */
static enum tally_means means_before(const struct step *step, unsigned int function)
{
	bool reads = is_marker(step->kind) || step->function != function ||
		(step->function != FUNCTION_USER && step->kind == INSN_ERET);

	return reads ? TALLY_CALL : TALLY_INLINE;
}

/*
 * An instruction that may abort is counted with the instruction after it. If there
 * is none, it is counted at its access, if it makes only one.
 */
static void open_after(struct tally_piece *piece, const struct step *step,
		       const struct step *next)
{
	bool one_access = (step->kind == INSN_LOAD || step->kind == INSN_STORE) &&
		insn_access_limit(step->op) < 16;

	if (next->insn)
		tally_open(piece, next->insn, means_before(next, step->function), piece->priv);
	else
		tally_open(piece, step->insn, one_access ? TALLY_ACCESS : TALLY_INLINE,
			   piece->priv);
}

/* Counts that a function has besides those of its pieces. */
static void watch_function(const struct blocks *b, const struct step *step)
{
	const struct counters *counters = &b->pmu->tallies.functions.counters;
	enum function_event event;

	stacks_watch_insn(b->stacks, step->insn, step->kind, step->op, step->address,
			  step->function);
	if (step->kind == INSN_TLBI)
		event = FN_TLBI;
	else if (step->kind == INSN_DSB)
		event = FN_DSB;
	else if (step->kind == INSN_ISB)
		event = FN_ISB;
	else if (insn_is_msr(step->op))
		event = FN_MSR;
	else
		return;
	counters_add_inline(counters, step->insn, function_counter(step->function, event), 1);
}

void blocks_translate(const struct blocks *b, struct qemu_plugin_tb *tb)
{
	struct functions *functions = &b->pmu->tallies.functions;
	size_t n = qemu_plugin_tb_n_insns(tb);
	enum privilege priv = privilege_at(qemu_plugin_tb_vaddr(tb));
	struct known_regs regs = { .known = 0 };
	uint64_t line = UINT64_MAX;
	struct tally_piece piece = { .tallies = &b->pmu->tallies };
	struct step step, next;

#if !FT_HAS_DISCON
	exceptions_watch_block(tb);
#endif
	if (functions_wanted(functions) && priv == PRIV_KERNEL &&
	    !functions_meet(functions, qemu_plugin_tb_get_insn(tb, 0)))
		pmu_die(b->pmu, "profile=%s: this is the System.map of another kernel",
			b->pmu->options.profile);
	step = step_at(b, tb, 0, priv);
	piece.function = step.function;
	tally_open(&piece, step.insn, means_before(&step, step.function), priv);
	for (size_t i = 0; i < n; i++, step = next) {
		next = step_at(b, tb, i + 1, priv);
		access_watch_fetch(b->pmu, step.insn, &line, priv);
		if (step.function != piece.function) {
			tally_close(&piece);
			piece.function = step.function;
			tally_open(&piece, step.insn, means_before(&step, step.function), priv);
			stacks_watch_arrival(b->stacks, tb, step.insn, false, step.address,
					     step.function);
		} else if (!i && step.function != FUNCTION_USER) {
			stacks_watch_arrival(b->stacks, tb, step.insn, true, step.address,
					     step.function);
		}
		if (is_marker(step.kind)) {
			/* Its own call counts it; the next piece begins after it. */
			tally_close(&piece);
			tally_open(&piece, next.insn, means_before(&next, step.function), priv);
		} else if (insn_may_abort(step.kind)) {
			tally_close(&piece);
			open_after(&piece, &step, &next);
			piece.access = tally_access_of(step.kind);
			piece.atomic = insn_is_atomic(step.op);
			tally_plain(&piece);
		} else {
			tally_plain(&piece);
		}
		if (step.function != FUNCTION_USER) {
			/* What an ERET's call reads includes the ERET. */
			if (step.kind == INSN_ERET)
				tally_close(&piece);
			watch_function(b, &step);
		}
		watch_insn(b, step.insn, next.insn, step.kind, step.op, priv);
#if !FT_HAS_DISCON
		if (step.kind == INSN_VBAR_WRITE && regs.known >> insn_rt(step.op) & 1)
			exceptions_learn_vectors(b->exceptions, regs.value[insn_rt(step.op)]);
#endif
		known_regs_step(&regs, step.op, qemu_plugin_insn_vaddr(step.insn));
	}
	tally_close(&piece);
}
