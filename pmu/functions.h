/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Counts by function of the kernel, whose names and addresses are those of its
 * System.map.
 *
 * A function is found by where its instructions lie in the guest's RAM, not by their
 * virtual address: the kernel is one piece there, so the distance to one instruction
 * whose symbol is known is the same as in System.map. That holds for a kernel at a
 * random address, and for the second address at which the kernel's trampolines run.
 * The instruction that is known is the first one executed in the upper half of the
 * addresses, at __primary_switched.
 */
#ifndef FT_FUNCTIONS_H
#define FT_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "counters.h"
#include "plugin_api.h"

enum function_event {
	FN_INSTRUCTIONS,
	FN_LOADS,
	FN_STORES,
	FN_DC_ZVA,
	FN_TLBI,
	FN_DSB,
	FN_ISB,
	FN_MSR,		/* register and immediate form */
	FN_ATOMICS,	/* LSE atomics, and load-exclusives */
	NR_FUNCTION_EVENTS
};

/*
 * Not functions: code in the lower half, the top of a task's stack (call_tree.h), and
 * code of the upper half without a symbol.
 */
#define FUNCTION_USER		0
#define FUNCTION_TASK		1
#define FUNCTION_UNKNOWN	2
#define FUNCTION_FIRST		3

struct function {
	uint64_t start;		/* in System.map */
	const char *name;
	uint64_t moves_stack;	/* where it moves to another stack; ~0: nowhere seen */
	bool vectors;		/* exceptions enter here, at multiples of VECTOR_SIZE */
};

#define VECTOR_SIZE	0x80

struct functions {
	struct function *at;	/* from FUNCTION_FIRST on in the order of addresses */
	unsigned int nr;
	uint64_t end;		/* of the kernel */
	uint64_t known;		/* the address of __primary_switched */
	uint64_t known_host;	/* where that is in QEMU's memory; 0: not yet executed */
	/* For function n, event e: number n * NR_FUNCTION_EVENTS + e. */
	struct counters counters;
};

/*
 * Reads @map. On failure writes the reason to @error. All zero is a valid state of
 * @f, without functions.
 */
bool functions_read(struct functions *f, const char *map, char *error,
		    size_t error_size);

static inline bool functions_wanted(const struct functions *f)
{
	return f->nr;
}

/* Call this for each block in the upper half; returns false if @map is of another kernel. */
bool functions_meet(struct functions *f, const struct qemu_plugin_insn *first);

/* The address that an instruction of the upper half has in System.map. */
uint64_t functions_address(const struct functions *f, const struct qemu_plugin_insn *insn);

/* The function that has the instruction at @address. */
unsigned int functions_find(const struct functions *f, uint64_t address);

/* The function named @name; FUNCTION_UNKNOWN if there is none. */
unsigned int functions_named(const struct functions *f, const char *name);

static inline size_t function_counter(unsigned int function, enum function_event event)
{
	return (size_t)function * NR_FUNCTION_EVENTS + event;
}

#endif
