// SPDX-License-Identifier: GPL-2.0
/* Encodings: Arm Architecture Reference Manual, DDI 0487, chapter C4. */
#include "decode.h"

#include <stddef.h>

static enum insn_kind barrier_kind(uint32_t insn)
{
	if ((insn & 0xfffff0ff) == 0xd50330df)
		return INSN_ISB;
	if ((insn & 0xfffff0ff) == 0xd503309f) {
		uint32_t crm = insn >> 8 & 0xf;

		/* SSBB and PSSBB have the same encoding but are no DSB. */
		return crm == 0 || crm == 4 ? INSN_PLAIN : INSN_DSB;
	}
	/* DSB nXS */
	if ((insn & 0xfffff3ff) == 0xd503323f)
		return INSN_DSB;
	return INSN_PLAIN;
}

static enum insn_kind system_kind(uint32_t insn)
{
	uint32_t op2 = insn >> 5 & 7;
	uint32_t crm = insn >> 8 & 0xf;
	uint32_t crn = insn >> 12 & 0xf;
	uint32_t op1 = insn >> 16 & 7;

	if ((insn & 0xfffff01f) == 0xd503201f) {
		static const enum insn_kind markers[8] = {
			[6] = INSN_REGION_BEGIN, [7] = INSN_REGION_END,
		};

		return crm == 0xf ? markers[op2] : INSN_PLAIN;
	}
	if ((insn & 0xfffff000) == 0xd5033000)
		return barrier_kind(insn);
	if ((insn & 0xfff80000) == 0xd5080000) {
		if (crn == 8 || crn == 9)
			return INSN_TLBI;
		if (crn == 7 && op1 == 3 && crm == 4 && op2 == 1)
			return INSN_DC_ZVA;
		/* IC IVAU and all of DC; not AT, which does not fault */
		if (crn == 7 && crm != 8)
			return INSN_DC_IC;
		return INSN_PLAIN;
	}
	if ((insn & 0xfff00000) == 0xd5100000) {
		/* SCTLR and HCR; TTBR, TCR and VTTBR */
		if (insn >> 19 & 1 && (crn == 1 || crn == 2))
			return INSN_MMU_WRITE;
		if (op1 == 0 && crn == 12 && crm == 0 && op2 == 0)
			return INSN_VBAR_WRITE;
		/* ICC_SGI1R, ICC_ASGI1R and ICC_SGI0R */
		if (insn >> 19 & 1 && op1 == 0 && crn == 12 && crm == 11 && op2 >= 5)
			return INSN_IPI;
	}
	return INSN_PLAIN;
}

/* Load/store exclusive, ordered, and compare and swap: bits 29:24 are 001000. */
static enum insn_kind exclusive_kind(uint32_t insn)
{
	bool load = insn >> 22 & 1;
	bool o2 = insn >> 23 & 1;
	bool o1 = insn >> 21 & 1;

	if (o1 && (o2 || !(insn >> 31)))
		return INSN_LOAD_STORE;		/* CAS, CASP */
	if (load)
		return INSN_LOAD;
	return o2 ? INSN_STORE : INSN_EXCLUSIVE_STORE;
}

/* Of memory tags, copies and sets of memory, and what LSUI, THE and LRCPC3 brought. */
static enum insn_kind newer_kind(uint32_t insn)
{
	bool load = insn >> 22 & 1;
	uint32_t opc = insn >> 22 & 3;
	uint32_t op2 = insn >> 10 & 3;
	bool vector = insn >> 26 & 1;

	if (!vector && insn >> 21 & 1) {
		if (insn >> 30 != 3)
			return INSN_LOAD_STORE;		/* LSE128, LSUI and RCW atomics */
		return load && !op2 ? INSN_LOAD : INSN_STORE;	/* LDG; STG and its kind */
	}
	switch (op2) {
	case 0:
		return opc ? INSN_LOAD : INSN_STORE;	/* LDAPUR, STLUR */
	case 1:
		return opc == 3 ? INSN_STORE : INSN_LOAD_STORE;	/* SETP; CPYP */
	case 2:
		/* LDAPR and LDIAPP, STLR and STILP; LDAPUR and STLUR of vectors */
		return load ? INSN_LOAD : INSN_STORE;
	default:
		return INSN_STORE;			/* GCSSTR */
	}
}

/* Single register forms: bits 29:27 are 111, bits 25:24 are 00 or 01. */
static enum insn_kind register_kind(uint32_t insn)
{
	uint32_t size = insn >> 30;
	uint32_t opc = insn >> 22 & 3;
	bool vector = insn >> 26 & 1;

	if (!(insn >> 24 & 1) && insn >> 21 & 1) {
		switch (insn >> 10 & 3) {
		case 0:
			/* LDAPR and LD64B, ST64B: no read-modify-write */
			if ((insn & 0x3ffffc00) == 0x38bfc000)
				return INSN_LOAD;
			if ((insn & 0xfffffc00) == 0xf83fd000)
				return INSN_LOAD;
			if ((insn & 0xffe0fc00) == 0xf8209000 ||
			    (insn & 0xffe0fc00) == 0xf820b000 ||
			    (insn & 0xffe0fc00) == 0xf820a000)
				return INSN_STORE;
			return INSN_LOAD_STORE;
		case 1:
		case 3:
			return INSN_LOAD;	/* LDRAA, LDRAB */
		}
	}
	if (vector)
		return opc & 1 ? INSN_LOAD : INSN_STORE;
	if (size == 3 && opc == 2)
		return INSN_PLAIN;		/* PRFM, PRFUM: never fault */
	return opc ? INSN_LOAD : INSN_STORE;
}

static enum insn_kind memory_kind(uint32_t insn)
{
	bool load = insn >> 22 & 1;

	switch (insn >> 27 & 7) {
	case 1:
		if (!(insn >> 26 & 1) && !(insn >> 24 & 1))
			return exclusive_kind(insn);
		if (insn >> 26 & 1)
			return load ? INSN_LOAD : INSN_STORE;	/* LD1..LD4, ST1..ST4 */
		/* LDTXR, STTXR; CAST */
		if (insn >> 31 && !(insn >> 23 & 1))
			return load ? INSN_LOAD : INSN_EXCLUSIVE_STORE;
		return INSN_LOAD_STORE;
	case 3:
		if (!(insn >> 24 & 1))			/* literal */
			return (insn >> 30 == 3 && !(insn >> 26 & 1)) ?
				INSN_PLAIN : INSN_LOAD;
		return newer_kind(insn);
	case 5:
		return load ? INSN_LOAD : INSN_STORE;	/* pairs */
	default:
		return register_kind(insn);
	}
}

/* SVE: bits 31 and 28:25 are 10010. */
static enum insn_kind vector_kind(uint32_t insn)
{
	static const struct {
		uint32_t mask, value;
	} prefetches[] = {
		/* of places: one base and offsets, two widths; bases and one offset */
		{ 0xbfa08010, 0x84200000 }, { 0xffe08010, 0xc4608000 }, { 0xbe60e010, 0x8400e000 },
		/* of one place: with an immediate, with a register */
		{ 0xffc08010, 0x85c00000 }, { 0xfe60e010, 0x8400c000 },
	};

	for (size_t i = 0; i < sizeof(prefetches) / sizeof(*prefetches); i++)
		if ((insn & prefetches[i].mask) == prefetches[i].value)
			return INSN_PLAIN;
	return (insn >> 29 & 3) == 3 ? INSN_STORE : INSN_LOAD;
}

enum insn_kind insn_kind(uint32_t insn)
{
	if ((insn & 0x0a000000) == 0x08000000)
		return memory_kind(insn);
	if ((insn & 0x9e000000) == 0x84000000)
		return vector_kind(insn);
	/* SME loads and stores: of its arrays, and of several vectors */
	if ((insn & 0xfe000000) == 0xe0000000 || (insn & 0xfe800000) == 0xa0000000)
		return insn >> 21 & 1 ? INSN_STORE : INSN_LOAD;
	if ((insn & 0xffc00000) == 0xd5000000)
		return system_kind(insn);
	if (insn == 0xd69f03e0 || insn == 0xd69f0bff || insn == 0xd69f0fff)
		return INSN_ERET;
	if ((insn & 0xffe0001f) == 0xd4000001)
		return INSN_SVC;
	/* The forms with pointer authentication have other bits in 24 and 11:0. */
	if ((insn & 0xfc000000) == 0x94000000 || (insn & 0xfefff000) == 0xd63f0000)
		return INSN_CALL;
	if ((insn & 0xfffff000) == 0xd65f0000)
		return INSN_RETURN;
	return INSN_PLAIN;
}

unsigned int insn_access_limit(uint32_t insn)
{
	/* Single general-purpose registers: LDR and STR in all their forms. */
	if ((insn & 0x3c000000) == 0x38000000)
		return 1u << (insn >> 30);
	return 16;
}

bool insn_is_msr(uint32_t insn)
{
	return (insn & 0xfff00000) == 0xd5100000 || (insn & 0xfff8f01f) == 0xd500401f;
}

bool insn_moves_stack(uint32_t insn)
{
	uint32_t rn = insn >> 5 & 0x1f;

	return (insn & 0xff80001f) == 0x9100001f && rn != 29 && rn != 31;
}

bool insn_is_atomic(uint32_t insn)
{
	/* LDXR, LDXP and their acquiring forms; CAS and CASP, which have bit 21 set, too */
	if ((insn & 0x3f000000) == 0x08000000)
		return !(insn >> 23 & 1) ? insn >> 21 & 1 || insn >> 22 & 1 : insn >> 21 & 1;
	/* LDADD and its kind, SWP; not LDAPR, LD64B and ST64B */
	return (insn & 0x3f200c00) == 0x38200000 && insn_kind(insn) == INSN_LOAD_STORE;
}

unsigned int tlbi_number(uint32_t insn)
{
	uint32_t op2 = insn >> 5 & 7;
	uint32_t crm = insn >> 8 & 0xf;
	uint32_t nxs = insn >> 12 & 1;		/* CRn is 8 or 9 */
	uint32_t op1 = insn >> 16 & 7;

	/* op1 is 0 (EL1), 4 (EL2) or 6 (EL3) */
	return nxs << 9 | (op1 >> 1) << 7 | crm << 3 | op2;
}

const char *tlbi_name(unsigned int number)
{
	/* By CRm, then op2; only EL1, since the guest runs at no other level. */
	static const char * const el1[16][8] = {
		[1] = { "vmalle1os", "vae1os", "aside1os", "vaae1os", NULL,
			"vale1os", NULL, "vaale1os" },
		[2] = { NULL, "rvae1is", NULL, "rvaae1is", NULL,
			"rvale1is", NULL, "rvaale1is" },
		[3] = { "vmalle1is", "vae1is", "aside1is", "vaae1is", NULL,
			"vale1is", NULL, "vaale1is" },
		[5] = { NULL, "rvae1os", NULL, "rvaae1os", NULL,
			"rvale1os", NULL, "rvaale1os" },
		[6] = { NULL, "rvae1", NULL, "rvaae1", NULL,
			"rvale1", NULL, "rvaale1" },
		[7] = { "vmalle1", "vae1", "aside1", "vaae1", NULL,
			"vale1", NULL, "vaale1" },
	};
	bool nxs = number >> 9;

	if (nxs || (number >> 7 & 3))
		return NULL;
	return el1[number >> 3 & 0xf][number & 7];
}

bool tlbi_is_broadcast(unsigned int number)
{
	unsigned int crm = number >> 3 & 0xf;
	unsigned int op2 = number & 7;

	/* By IPA, at EL2, local ones are among the others. */
	if (crm == 4)
		return op2 == 0 || op2 == 3 || op2 == 4 || op2 == 7;
	/* 6 and 7 are local; the others are Inner or Outer Shareable. */
	return crm < 6;
}

static void set_reg(struct known_regs *k, unsigned int r, uint64_t value)
{
	k->value[r] = value;
	k->known |= 1u << r;
}

void known_regs_step(struct known_regs *k, uint32_t insn, uint64_t pc)
{
	unsigned int rd = insn & 0x1f;
	unsigned int rn = insn >> 5 & 0x1f;
	/* ADR and ADRP: 21 bits, signed */
	int64_t imm21 = (int32_t)(((insn >> 5 & 0x7ffff) << 2 | (insn >> 29 & 3)) << 11) >> 11;

	if ((insn & 0x9f000000) == 0x10000000) {
		set_reg(k, rd, pc + imm21);
	} else if ((insn & 0x9f000000) == 0x90000000) {
		set_reg(k, rd, (pc & ~UINT64_C(0xfff)) + (imm21 << 12));
	} else if ((insn & 0xff800000) == 0x91000000 && k->known >> rn & 1) {
		set_reg(k, rd, k->value[rn] + ((insn >> 10 & 0xfff) << (insn >> 22 & 1 ? 12 : 0)));
	} else if ((insn & 0xffc00000) != 0xd5000000) {
		/* Most others write Xd or nothing; to forget Xd is always safe. */
		k->known &= ~(1u << rd);
		if (insn_accesses_memory(insn_kind(insn)))
			k->known = 0;
	}
}
