/* SPDX-License-Identifier: GPL-2.0 */
/* The tree of the kernel's calls, with what each function in it executed itself. */
#ifndef FT_CALL_TREE_H
#define FT_CALL_TREE_H

#include <stdbool.h>
#include <stdint.h>

/* How a function was entered. */
enum entered {
	BY_CALL,
	BY_TAIL_CALL,		/* by a jump, or because the function before it ends there */
	BY_EXCEPTION,
	BY_STACK_SWITCH,	/* by a call after the stack pointer moved to another stack */
	NR_ENTERED
};

enum own { OWN_INSTRUCTIONS, OWN_L1D_MISSES, OWN_L2_MISSES, OWN_ENTRIES, NR_OWN };

struct call_node {
	struct call_node *parent, *child, *sibling;
	unsigned int function;
	enum entered entered;
	unsigned int row;		/* of what call_tree_take() returns, or NO_ROW */
	uint64_t own[NR_OWN];		/* since the region began */
};

#define NO_ROW	UINT32_MAX

/* Where stacks begin: in user code, and in a task that has not come from there. */
struct call_tree {
	struct call_node user, task;
};

/* @parent is an earlier row's number, or its own if it has none. */
struct call_row {
	unsigned int parent, function;
	enum entered entered;
	uint64_t own[NR_OWN];
};

void call_tree_init(struct call_tree *tree);
/* The node of @function below @parent, which may be new; counts that it was entered. */
struct call_node *call_tree_child(struct call_node *parent, unsigned int function,
				  enum entered entered);
/* A region begins: count from 0. */
void call_tree_restart(struct call_tree *tree);
/*
 * Returns @nr rows, which the caller frees: those that counted something since
 * call_tree_restart(), and all above them.
 */
struct call_row *call_tree_take(struct call_tree *tree, unsigned int *nr);

#endif
