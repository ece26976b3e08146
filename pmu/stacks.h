/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Follows the calls by which the kernel comes to each instruction (call_tree.h).
 *
 * Generated code adds a mark to one counter for each call and each return. Where a
 * call or a return can arrive, at a function's first instruction and behind each call,
 * the plugin looks at what was added since it last looked:
 *  - a call: the function is a child of the caller;
 *  - a return: back to the caller that has this address to return to;
 *  - nothing, in a function that is not the current one: a jump, as of a tail call.
 * Exceptions arrive at vectors, and end with ERET. The stack of a task that
 * cpu_switch_to() leaves is kept under the address at which that function stores the
 * task's registers.
 *
 * What a function executed is read from its counter (functions.h) when the kernel
 * leaves it.
 */
#ifndef FT_STACKS_H
#define FT_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "call_tree.h"
#include "decode.h"
#include "functions.h"
#include "plugin_api.h"
#include "pmu.h"

/* A call in the code. */
struct call {
	uint64_t back;		/* the address that it returns to */
	enum entered entered;
};

struct frame {
	struct call_node *caller;
	uint64_t back;		/* the address to return to; 0: an exception's */
	uint64_t unseen;	/* an exception's: marks that the plugin had not looked at */
};

struct stack {
	struct frame *frame;
	size_t depth, room;
};

struct task {
	uint64_t key;
	struct stack stack;
	struct task *next;
};

#define NR_TASK_LISTS	256

struct stacks {
	struct pmu *pmu;
	struct counters marks;
	uint64_t *mark;			/* the counter of the one CPU */
	uint64_t *counted;		/* the functions' counters */
	uint64_t seen;			/* of *mark */
	uint64_t *seen_counted;		/* instructions, by function */
	uint64_t seen_misses[NR_LEVELS];
	struct call *call;		/* by the number that its mark adds */
	size_t nr_calls;
	struct call_tree tree;
	struct call_node *current;
	struct stack stack;
	struct task *task[NR_TASK_LISTS];
	uint64_t left;			/* the key of the task that is being left */
	bool switching;
	unsigned int switch_to;		/* cpu_switch_to */
	uint64_t lost;			/* arrivals after several calls or returns: 0 */
};

/* Does nothing if @pmu counts no functions. Returns false if out of memory. */
bool stacks_init(struct stacks *s, struct pmu *pmu);

/*
 * While a block is translated. @insn, of the upper half, is at @address in @function.
 * arrival: control may arrive there. @first: it begins a block.
 */
void stacks_watch_arrival(struct stacks *s, struct qemu_plugin_tb *tb,
			  struct qemu_plugin_insn *insn, bool first, uint64_t address,
			  unsigned int function);
void stacks_watch_insn(struct stacks *s, struct qemu_plugin_insn *insn,
		       enum insn_kind kind, uint32_t op, uint64_t address,
		       unsigned int function);

/* Books what ran until now: before the tree is read or restarted. */
void stacks_settle(struct stacks *s);

#endif
