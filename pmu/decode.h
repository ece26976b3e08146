/* SPDX-License-Identifier: GPL-2.0 */
/* What the counters need to know about an A64 instruction, from its opcode. */
#ifndef FT_DECODE_H
#define FT_DECODE_H

#include <stdbool.h>
#include <stdint.h>

enum insn_kind {
	INSN_PLAIN,		/* cannot fault on memory, nothing else to count */
	INSN_LOAD,
	INSN_STORE,
	INSN_LOAD_STORE,	/* atomics that return the old value */
	INSN_EXCLUSIVE_STORE,	/* a store that may fail and not store */
	INSN_DC_ZVA,
	INSN_DC_IC,		/* other cache maintenance by address: may fault */
	INSN_TLBI,
	INSN_DSB,
	INSN_ISB,
	INSN_ERET,
	INSN_SVC,
	INSN_CALL,		/* BL, BLR */
	INSN_RETURN,		/* RET */
	INSN_IPI,		/* MSR ICC_SGI1R_EL1 and its kin: interrupts CPUs */
	INSN_MMU_WRITE,		/* MSR to a register that changes translation */
	INSN_VBAR_WRITE,	/* MSR VBAR_EL1 */
	INSN_REGION_BEGIN,	/* hint #0x7e */
	INSN_REGION_END,	/* hint #0x7f */
};

enum insn_kind insn_kind(uint32_t insn);

/* Whether QEMU may call back for a memory access of an instruction of @kind. */
static inline bool insn_accesses_memory(enum insn_kind kind)
{
	return kind >= INSN_LOAD && kind <= INSN_EXCLUSIVE_STORE;
}

/* Whether a data abort can interrupt an instruction of @kind. */
static inline bool insn_may_abort(enum insn_kind kind)
{
	return kind >= INSN_LOAD && kind <= INSN_DC_IC;
}

/*
 * The largest size in bytes of one access of a load or store; 16 where a smaller
 * bound gains nothing.
 */
unsigned int insn_access_limit(uint32_t insn);

/* Whether an instruction is an MSR, to a register or of an immediate. */
bool insn_is_msr(uint32_t insn);

/* Whether an instruction moves to another stack: ADD SP, of neither SP nor X29. */
bool insn_moves_stack(uint32_t insn);

/* Whether an instruction is an LSE atomic or a load-exclusive. */
bool insn_is_atomic(uint32_t insn);

/*
 * op1, CRn, CRm and op2 identify a TLBI. It has a small number for the counters,
 * below NR_TLBI, and its architectural name in lower case, or NULL if the
 * architecture has none.
 */
#define NR_TLBI	1024
unsigned int tlbi_number(uint32_t insn);
const char *tlbi_name(unsigned int number);
/* Whether the CPUs of a shareability domain carry it out, not only this one. */
bool tlbi_is_broadcast(unsigned int number);

/*
 * Tracks the instructions that build an address (ADR, ADRP, ADD and MOV of
 * immediates) through one block, to know the value that an MSR writes.
 */
struct known_regs {
	uint64_t value[32];
	uint32_t known;		/* bit n: value[n] is the value of Xn */
};

void known_regs_step(struct known_regs *k, uint32_t insn, uint64_t pc);

static inline unsigned int insn_rt(uint32_t insn)
{
	return insn & 0x1f;
}

#endif
