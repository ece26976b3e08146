/* SPDX-License-Identifier: GPL-2.0 */
/* What the counters need to know of an A64 instruction, from its opcode. */
#ifndef FT_DECODE_H
#define FT_DECODE_H

#include <stdbool.h>
#include <stdint.h>

enum insn_kind {
	INSN_PLAIN,		/* cannot fault on memory, nothing else to count */
	INSN_LOAD,
	INSN_STORE,
	INSN_LOAD_STORE,	/* atomics that return what they replace */
	INSN_EXCLUSIVE_STORE,	/* a store that may fail without one */
	INSN_DC_ZVA,
	INSN_DC_IC,		/* other cache maintenance by address: may fault */
	INSN_TLBI,
	INSN_DSB,
	INSN_ISB,
	INSN_ERET,
	INSN_SVC,
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

/* Whether an instruction of @kind can be cut short by a data abort. */
static inline bool insn_may_abort(enum insn_kind kind)
{
	return kind >= INSN_LOAD && kind <= INSN_DC_IC;
}

/*
 * The most bytes that one access of a load or store can have; 16 where it is not
 * worth telling.
 */
unsigned int insn_access_limit(uint32_t insn);

/*
 * A TLBI is known by op1, CRn, CRm and op2: a small number for the counters,
 * below NR_TLBI, and its architectural name in lower case, or NULL where the
 * architecture has none.
 */
#define NR_TLBI	1024
unsigned int tlbi_number(uint32_t insn);
const char *tlbi_name(unsigned int number);

/*
 * Follows the few instructions that build an address (ADR, ADRP, ADD and MOV of
 * immediates) through one block, to know what an MSR writes.
 */
struct known_regs {
	uint64_t value[32];
	uint32_t known;		/* bit n: value[n] holds what Xn holds */
};

void known_regs_step(struct known_regs *k, uint32_t insn, uint64_t pc);

static inline unsigned int insn_rt(uint32_t insn)
{
	return insn & 0x1f;
}

#endif
