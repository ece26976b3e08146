/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which A64 instructions announce a write by reading?
 *
 * ESR_ELx.WnR is 0 for a fault on an atomic read-modify-write when a plain
 * read of the address would have faulted too, and always for a load-exclusive.
 * The kernel therefore has to look at the instruction to know that the page is
 * about to be written.
 *
 * This file is pure: a word in, a kind out, nothing else touched. The fault
 * handler, the KUnit tests and the decoder tests that run on the build host
 * compile this one copy.
 *
 * The encodings are those of the A64 instruction set, 2025-12 edition
 * (Armv9.7-A). An unallocated or UNDEFINED word never raises a data abort, so
 * being told about one would be harmless; the masks are exact all the same, so
 * that an encoding which is given a meaning later is not taken for a write.
 */
#ifndef __ASM_WRITE_INTENT_INSN_H
#define __ASM_WRITE_INTENT_INSN_H

#ifdef __KERNEL__
#include <linux/types.h>
#endif

enum write_intent {
	WRITE_INTENT_NONE,
	/* Writes, or is checked for write permission whatever it compares. */
	WRITE_INTENT_RMW,
	/* Load-exclusive: a store to the address may follow, or may not. */
	WRITE_INTENT_EXCLUSIVE,
	/* Not an answer to callers of a64_write_intent(). */
	WRITE_INTENT_UNSURE,
};

/* Bits 29:24, which tell the classes below apart. */
#define A64_LDST_CLASS(insn)	(((insn) >> 24) & 0x3f)

#define A64_LDST_EXCLUSIVE	0x08	/* LDXR family, CAS, CASP */
#define A64_LDST_UNPRIV_EXCL	0x09	/* LDTXR, CAST, CASPT (FEAT_LSUI) */
#define A64_LDST_PAIR_ATOMIC	0x19	/* FEAT_LSE128, FEAT_LSUI, FEAT_THE */
#define A64_LDST_ATOMIC		0x38	/* FEAT_LSE, 64-bit FEAT_THE */
#define A64_LDST_FP_ATOMIC	0x3c	/* FEAT_LSFE */

/* o3:opc of the atomics, bits 15:12 */
#define A64_ATOMIC_OP(insn)	(((insn) >> 12) & 0xf)

/* The values of o3:opc that an extension allocates, as a set: bit n for n. */
#define A64_LSFE_LD_OPS		0x00f1	/* LDFADD, LDF{MAX,MIN}{,NM} */
#define A64_LSFE_ST_OPS		0xf100	/* STFADD, STF{MAX,MIN}{,NM} */
#define A64_LSUI_OPS		0x010b	/* LDTADD, LDTCLR, LDTSET, SWPT */
#define A64_LSE128_OPS		0x010a	/* LDCLRP, LDSETP, SWPP */
#define A64_RCW_PAIR_OPS	0x0e00	/* RCWCLRP, RCWSWPP, RCWSETP */

static inline bool a64_op_in(u32 insn, u32 ops)
{
	return (ops >> A64_ATOMIC_OP(insn)) & 1;
}

/* CASP and its kin: Rs and Rt each name a pair, an odd number is UNDEFINED. */
static inline bool a64_pairs_are_even(u32 insn)
{
	return !(insn & 0x00010001);
}

/* SWPP and its kin: Rt and Rt2 are a pair, and 31 in it is UNDEFINED. */
static inline bool a64_pair_has_no_zr(u32 insn)
{
	return (insn & 0x0000001f) != 0x0000001f &&
	       (insn & 0x001f0000) != 0x001f0000;
}

/*
 * size 111 V 00 A R 1 Rs o3 opc 00 Rn Rt
 *
 * V = 0: o3:opc 0-7 are LD<op>, 8 is SWP. 9-11 are RCWCLR, RCWSWP and RCWSET
 * with size 0x, but ST64B, ST64BV0 and ST64BV with size 11. 12 is LDAPR, 13 is
 * LD64B. The ST<op> aliases are LD<op> with Rt = 31.
 *
 * V = 1: FEAT_LSFE. The forms without a result have A = 0 and Rt = 31.
 */
static inline enum write_intent a64_atomic_intent(u32 insn)
{
	u32 op = A64_ATOMIC_OP(insn);
	bool rmw;

	if (!(insn & (1U << 26)))
		rmw = op <= 8 || (op <= 11 && !(insn & (1U << 31)));
	else
		rmw = a64_op_in(insn, A64_LSFE_LD_OPS) ||
		      (a64_op_in(insn, A64_LSFE_ST_OPS) &&
		       (insn & 0x0080001f) == 0x0000001f);

	return rmw ? WRITE_INTENT_RMW : WRITE_INTENT_NONE;
}

/*
 * size 001000 o2 L o1 Rs o0 Rt2 Rn Rt
 *
 *   o2 o1
 *   0  0   LDXR, LDAXR (L = 1), STXR, STLXR
 *   0  1   LDXP, LDAXP (L = 1), STXP, STLXP with size 1x; CASP with size 0x
 *   1  0   ordered loads and stores
 *   1  1   CAS
 *
 * The (1) bits of the load-exclusives are not looked at: with one of them
 * clear the instruction is CONSTRAINED UNPREDICTABLE, and one that faulted on
 * a read did execute as a load-exclusive.
 */
#define A64_EXCL_O2		0x00800000
#define A64_EXCL_LOAD		0x00400000
#define A64_EXCL_O1		0x00200000
#define A64_EXCL_WIDE		0x80000000

/* Class, o2 and L in one, for words with o1 = 0: no more to look at. */
static __always_inline bool a64_is_load_exclusive(u32 insn)
{
	return ((insn >> 22) & 0xff) == (A64_LDST_EXCLUSIVE << 2 | 1);
}

/* The half of the class that has o1 = 1 */
static __always_inline enum write_intent a64_exclusive_o1_intent(u32 insn)
{
	const u32 pair = A64_EXCL_WIDE | A64_EXCL_O2 | A64_EXCL_LOAD;

	if (!(~insn & 0x00007c00)) {	/* Rt2 = 31 */
		if (insn & A64_EXCL_O2)
			return WRITE_INTENT_RMW;
		if (!(insn & A64_EXCL_WIDE))
			return a64_pairs_are_even(insn) ? WRITE_INTENT_RMW :
							  WRITE_INTENT_NONE;
	}

	return (insn & pair) == (A64_EXCL_WIDE | A64_EXCL_LOAD) ?
		       WRITE_INTENT_EXCLUSIVE : WRITE_INTENT_NONE;
}

/* size 001001 o2 L 0 Rs o0 Rt2 Rn Rt */
static inline enum write_intent a64_unpriv_exclusive_intent(u32 insn)
{
	/* LDTXR, LDATXR of 32 and 64 bits */
	if ((insn & 0xbfe00000) == 0x89400000)
		return WRITE_INTENT_EXCLUSIVE;

	/* CAST is of 64 bits only, CASPT of two times 64 */
	if ((insn & 0xffa07c00) == 0xc9807c00 ||
	    ((insn & 0xffa07c00) == 0x49807c00 && a64_pairs_are_even(insn)))
		return WRITE_INTENT_RMW;

	return WRITE_INTENT_NONE;
}

/*
 * sz 011001 A R 1 Rs o3 opc xx Rn Rt, with bits 31:30 and 11:10 telling the
 * extensions apart
 *
 * The read-check-write instructions store only if the check passes, but the
 * access is described to the translation regime as a read and a write before
 * anything is read (the pseudocode's CreateAccDescRCW(), as for CAS), so the
 * page must be writable whatever the outcome.
 */
static inline enum write_intent a64_pair_atomic_intent(u32 insn)
{
	bool rmw = false;

	if ((insn & 0x80200000) != 0x00200000)
		return WRITE_INTENT_NONE;

	switch ((insn >> 10) & 3) {
	case 0:		/* bit 30 is the S of RCWS */
		rmw = a64_pair_has_no_zr(insn) &&
		      (a64_op_in(insn, A64_RCW_PAIR_OPS) ||
		       (a64_op_in(insn, A64_LSE128_OPS) &&
			!(insn & (1U << 30))));
		break;
	case 1:
		rmw = a64_op_in(insn, A64_LSUI_OPS);
		break;
	case 2:		/* RCWCAS, RCWSCAS */
		rmw = A64_ATOMIC_OP(insn) == 0;
		break;
	case 3:		/* RCWCASP, RCWSCASP */
		rmw = A64_ATOMIC_OP(insn) == 0 && a64_pairs_are_even(insn);
		break;
	}

	return rmw ? WRITE_INTENT_RMW : WRITE_INTENT_NONE;
}

/*
 * Common cases first: this runs for every read fault on writable memory.
 * Answers WRITE_INTENT_UNSURE where a64_write_intent_rare() is to be asked.
 *
 * Bit 29 is set in all loads and stores but the exclusive, the ordered and the
 * literal ones; bit 24 then in those with an unsigned offset, and in pairs.
 */
static __always_inline enum write_intent a64_write_intent_common(u32 insn)
{
	if (insn & (1U << 29)) {
		if (insn & (1U << 24))
			return WRITE_INTENT_NONE;
		/* LD<op>, ST<op>; SWP */
		if ((insn & 0x3f200c00) == 0x38200000)
			return A64_ATOMIC_OP(insn) <= 8 ? WRITE_INTENT_RMW :
							  WRITE_INTENT_UNSURE;
		if ((insn & 0x3f200c00) != 0x3c200000)
			return WRITE_INTENT_NONE;
	} else if (!(insn & A64_EXCL_O1)) {
		if (__builtin_expect(a64_is_load_exclusive(insn), 1))
			return WRITE_INTENT_EXCLUSIVE;
	} else if (A64_LDST_CLASS(insn) == A64_LDST_EXCLUSIVE) {
		return a64_exclusive_o1_intent(insn);
	}

	return WRITE_INTENT_UNSURE;
}

static inline enum write_intent a64_write_intent_rare(u32 insn)
{
	switch (A64_LDST_CLASS(insn)) {
	case A64_LDST_UNPRIV_EXCL:
		return a64_unpriv_exclusive_intent(insn);
	case A64_LDST_PAIR_ATOMIC:
		return a64_pair_atomic_intent(insn);
	case A64_LDST_ATOMIC:
	case A64_LDST_FP_ATOMIC:
		return a64_atomic_intent(insn);
	default:
		return WRITE_INTENT_NONE;
	}
}

static inline enum write_intent a64_write_intent(u32 insn)
{
	enum write_intent intent = a64_write_intent_common(insn);

	return intent == WRITE_INTENT_UNSURE ? a64_write_intent_rare(insn) :
					       intent;
}

#endif /* __ASM_WRITE_INTENT_INSN_H */
