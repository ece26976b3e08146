// SPDX-License-Identifier: GPL-2.0
#include "stacks.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"

/*
 * The marks in one counter: calls and returns so far, and the sum of the calls'
 * numbers, from which follows the number of the last one.
 */
#define MARK_CALL	(UINT64_C(1) << 32)
#define MARK_RETURN	(UINT64_C(1) << 48)

bool stacks_init(struct stacks *s, struct pmu *pmu)
{
	const struct functions *f = &pmu->tallies.functions;

	s->pmu = pmu;
	call_tree_init(&s->tree);
	s->current = &s->tree.user;
	if (!functions_wanted(f))
		return true;
	s->switch_to = functions_named(f, "cpu_switch_to");
	s->seen_counted = calloc(f->nr, sizeof(*s->seen_counted));
	return s->seen_counted && counters_init(&s->marks, 1, 1);
}

void stacks_settle(struct stacks *s)
{
	struct call_node *node = s->current;
	const struct level_counts *level = s->pmu->caches.cpu[0].counts[PRIV_KERNEL];
	uint64_t counted;

	if (!s->mark)
		return;
	counted = s->counted[function_counter(node->function, FN_INSTRUCTIONS)];
	node->own[OWN_INSTRUCTIONS] += counted - s->seen_counted[node->function];
	s->seen_counted[node->function] = counted;
	node->own[OWN_L1D_MISSES] += level[LEVEL_L1D].misses - s->seen_misses[LEVEL_L1D];
	s->seen_misses[LEVEL_L1D] = level[LEVEL_L1D].misses;
	node->own[OWN_L2_MISSES] += level[LEVEL_L2].misses - s->seen_misses[LEVEL_L2];
	s->seen_misses[LEVEL_L2] = level[LEVEL_L2].misses;
}

static void push(struct stacks *s, uint64_t back, uint64_t unseen)
{
	struct stack *stack = &s->stack;

	if (stack->depth == stack->room) {
		stack->room = stack->room ? 2 * stack->room : 64;
		stack->frame = must_have(realloc(stack->frame, stack->room *
						     sizeof(*stack->frame)));
	}
	stack->frame[stack->depth++] = (struct frame){ s->current, back, unseen };
}

/* A function that was jumped to stands below the one that jumped, but only once. */
static void jump(struct stacks *s, unsigned int function)
{
	for (struct call_node *n = s->current; ; n = n->parent) {
		if (n->function == function) {
			s->current = n;
			return;
		}
		if (n->entered != BY_TAIL_CALL)
			break;
	}
	s->current = call_tree_child(s->current, function, BY_TAIL_CALL);
}

/* A return to @address in @function. */
static void come_back(struct stacks *s, uint64_t address, unsigned int function)
{
	bool switching = s->switching;

	s->switching = false;
	for (size_t d = s->stack.depth; d-- && s->stack.frame[d].back; ) {
		if (s->stack.frame[d].back == address) {
			s->current = s->stack.frame[d].caller;
			s->stack.depth = d;
			break;
		}
	}
	if (s->current->function == function)
		return;
	if (switching) {
		/* A new task, or one that was left before the plugin knew its stack */
		s->stack.depth = 0;
		s->current = call_tree_child(&s->tree.task, function, BY_CALL);
	} else {
		jump(s, function);
	}
}

struct arrival {
	struct stacks *stacks;
	uint64_t address;
	unsigned int function;
	bool vector;
};

static void on_arrival(unsigned int cpu, void *udata)
{
	const struct arrival *a = udata;
	struct stacks *s = a->stacks;
	uint64_t mark = *s->mark, marks = mark - s->seen;

	(void)cpu;
	if (a->vector) {
		stacks_settle(s);
		push(s, 0, marks);
		s->seen = mark;
		s->current = call_tree_child(s->current, a->function, BY_EXCEPTION);
		return;
	}
	if (!marks && a->function == s->current->function)
		return;
	stacks_settle(s);
	s->seen = mark;
	if (!marks) {
		jump(s, a->function);
	} else if (marks == MARK_RETURN) {
		come_back(s, a->address, a->function);
	} else if (marks >> 32 == 1) {
		const struct call *call = &s->call[(uint32_t)marks];

		push(s, call->back, 0);
		s->current = call_tree_child(s->current, a->function, call->entered);
	} else {
		s->lost++;
		jump(s, a->function);
	}
}

static void on_eret(unsigned int cpu, void *udata)
{
	struct stacks *s = udata;
	size_t depth = s->stack.depth;

	(void)cpu;
	stacks_settle(s);
	while (depth && s->stack.frame[depth - 1].back)
		depth--;
	if (!depth) {
		/* A new task goes to user code for the first time. */
		s->stack.depth = 0;
		s->current = &s->tree.user;
		return;
	}
	s->stack.depth = depth - 1;
	s->current = s->stack.frame[depth - 1].caller;
	s->seen = *s->mark - s->stack.frame[depth - 1].unseen;
}

static struct stack *stack_of(struct stacks *s, uint64_t key)
{
	struct task **link = &s->task[(key >> 6) % NR_TASK_LISTS];

	while (*link && (*link)->key != key)
		link = &(*link)->next;
	if (!*link) {
		*link = must_have(calloc(1, sizeof(**link)));
		(*link)->key = key;
	}
	return &(*link)->stack;
}

/* cpu_switch_to() first stores to the task that it leaves, then loads from the next. */
static void on_switch_store(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t va,
			    void *udata)
{
	struct stacks *s = udata;

	(void)cpu;
	(void)info;
	if (!s->left)
		s->left = va;
}

static void on_switch_load(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t va,
			   void *udata)
{
	struct stacks *s = udata;
	struct stack *next;

	(void)cpu;
	(void)info;
	if (!s->left)
		return;
	/* The task itself still runs: what is kept of the next one is free. */
	*stack_of(s, s->left) = s->stack;
	next = stack_of(s, va);
	s->stack = *next;
	memset(next, 0, sizeof(*next));
	s->left = 0;
	s->switching = true;
}

/* Whether the instruction before @insn in memory is a call. */
static bool is_behind_call(const struct qemu_plugin_insn *insn)
{
	const char *host = qemu_plugin_insn_haddr(insn);
	uint32_t op;

	if (!host)
		return false;
	memcpy(&op, host - sizeof(op), sizeof(op));
	return insn_kind(op) == INSN_CALL;
}

void stacks_watch_arrival(struct stacks *s, struct qemu_plugin_tb *tb,
			  struct qemu_plugin_insn *insn, bool first, uint64_t address,
			  unsigned int function)
{
	const struct functions *f = &s->pmu->tallies.functions;
	const struct function *in = &f->at[function];
	struct arrival *a;

	if (!s->mark) {
		s->mark = counters_row(&s->marks, 0);
		s->counted = counters_row(&f->counters, 0);
	}
	if (first && address != in->start && !in->vectors && !is_behind_call(insn))
		return;
	a = must_have(malloc(sizeof(*a)));
	a->stacks = s;
	a->address = address;
	a->function = function;
	a->vector = in->vectors && address % VECTOR_SIZE == 0;
	if (first)
		qemu_plugin_register_vcpu_tb_exec_cb(tb, on_arrival, QEMU_PLUGIN_CB_NO_REGS, a);
	else
		qemu_plugin_register_vcpu_insn_exec_cb(insn, on_arrival,
						       QEMU_PLUGIN_CB_NO_REGS, a);
}

static size_t new_call(struct stacks *s, uint64_t address, const struct function *in)
{
	/* Doubled whenever the number is a power of two. */
	if (!(s->nr_calls & (s->nr_calls - 1)))
		s->call = must_have(realloc(s->call, (s->nr_calls ? 2 * s->nr_calls : 1) *
					    sizeof(*s->call)));
	s->call[s->nr_calls].back = address + 4;
	/* It has run before the call is translated, in another block. */
	s->call[s->nr_calls].entered = address > in->moves_stack ? BY_STACK_SWITCH : BY_CALL;
	return s->nr_calls++;
}

void stacks_watch_insn(struct stacks *s, struct qemu_plugin_insn *insn,
		       enum insn_kind kind, uint32_t op, uint64_t address,
		       unsigned int function)
{
	struct function *in = &s->pmu->tallies.functions.at[function];

	if (insn_moves_stack(op))
		in->moves_stack = address;
	switch (kind) {
	case INSN_CALL:
		counters_add_inline(&s->marks, insn, 0, MARK_CALL + new_call(s, address, in));
		break;
	case INSN_RETURN:
		counters_add_inline(&s->marks, insn, 0, MARK_RETURN);
		break;
	case INSN_ERET:
		qemu_plugin_register_vcpu_insn_exec_cb(insn, on_eret, QEMU_PLUGIN_CB_NO_REGS, s);
		break;
	default:
		break;
	}
	if (function != s->switch_to || function == FUNCTION_UNKNOWN)
		return;
	if (kind == INSN_STORE)
		qemu_plugin_register_vcpu_mem_cb(insn, on_switch_store, QEMU_PLUGIN_CB_NO_REGS,
						 QEMU_PLUGIN_MEM_RW, s);
	else if (kind == INSN_LOAD)
		qemu_plugin_register_vcpu_mem_cb(insn, on_switch_load, QEMU_PLUGIN_CB_NO_REGS,
						 QEMU_PLUGIN_MEM_RW, s);
}

