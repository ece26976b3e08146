// SPDX-License-Identifier: GPL-2.0
#include "tally.h"

#include <stdlib.h>

_Static_assert(NR_TALLIES <= USERDATA_NUMBERS, "a tally has no number in userdata");

bool tally_init(struct tallies *t, unsigned int nr_cpus)
{
	t->nr_cpus = nr_cpus;
	return counters_init(&t->counters, NR_TALLIES, nr_cpus);
}

static unsigned int tally_number(const struct tally_piece *piece)
{
	return (piece->priv * NR_TALLY_ACCESSES + piece->access) * (TALLY_MAX_INSNS + 1) +
	       piece->insns;
}

static void add_by_call(unsigned int cpu, void *udata)
{
	const struct tallies *t = userdata_context(udata);

	counters_row(&t->counters, cpu)[userdata_number(udata)]++;
}

static void add_by_access(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t va,
			  void *udata)
{
	(void)info;
	(void)va;
	add_by_call(cpu, udata);
}

void tally_open(struct tally_piece *piece, struct qemu_plugin_insn *head,
		enum tally_means means, enum privilege priv)
{
	piece->head = head;
	piece->means = means;
	piece->priv = priv;
	piece->access = TALLY_NONE;
	piece->atomic = false;
	piece->insns = 0;
}

/* What a piece adds to the counts of its function. */
struct charge {
	struct counters *counters;
	unsigned int nr;
	struct {
		size_t number;
		uint64_t amount;
	} add[4];
};

static void charge_add(struct charge *c, unsigned int function, enum function_event event,
		       uint64_t amount)
{
	c->add[c->nr].number = function_counter(function, event);
	c->add[c->nr++].amount = amount;
}

static struct charge charge_of(const struct tally_piece *piece)
{
	struct charge c = { .counters = &piece->tallies->functions.counters };

	charge_add(&c, piece->function, FN_INSTRUCTIONS, piece->insns);
	if (piece->access == TALLY_LOAD || piece->access == TALLY_LOAD_STORE)
		charge_add(&c, piece->function, FN_LOADS, 1);
	if (piece->access == TALLY_STORE || piece->access == TALLY_LOAD_STORE)
		charge_add(&c, piece->function, FN_STORES, 1);
	if (piece->access == TALLY_DC_ZVA)
		charge_add(&c, piece->function, FN_DC_ZVA, 1);
	if (piece->atomic)
		charge_add(&c, piece->function, FN_ATOMICS, 1);
	return c;
}

static void charge_by_call(unsigned int cpu, void *udata)
{
	const struct charge *c = udata;
	uint64_t *row = counters_row(c->counters, cpu);

	for (unsigned int i = 0; i < c->nr; i++)
		row[c->add[i].number] += c->add[i].amount;
}

static void charge_by_access(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t va,
			     void *udata)
{
	(void)info;
	(void)va;
	charge_by_call(cpu, udata);
}

/* Few pieces are counted by calls, so that what these need may stay until the end. */
static void *kept(const struct charge *charge)
{
	struct charge *c = malloc(sizeof(*c));

	if (!c)
		abort();
	*c = *charge;
	return c;
}

static void charge_function(const struct tally_piece *piece)
{
	struct charge charge = charge_of(piece);

	switch (piece->means) {
	case TALLY_INLINE:
		for (unsigned int i = 0; i < charge.nr; i++)
			counters_add_inline(charge.counters, piece->head,
					    charge.add[i].number, charge.add[i].amount);
		break;
	case TALLY_CALL:
		qemu_plugin_register_vcpu_insn_exec_cb(piece->head, charge_by_call,
						       QEMU_PLUGIN_CB_NO_REGS,
						       kept(&charge));
		break;
	case TALLY_ACCESS:
		qemu_plugin_register_vcpu_mem_cb(piece->head, charge_by_access,
						 QEMU_PLUGIN_CB_NO_REGS,
						 QEMU_PLUGIN_MEM_RW, kept(&charge));
		break;
	}
}

static void add_tally(const struct tally_piece *piece)
{
	struct tallies *t = piece->tallies;
	unsigned int number = tally_number(piece);

	switch (piece->means) {
	case TALLY_INLINE:
		if (t->nr_cpus == 1) {
			counters_add_inline(&t->counters, piece->head, number, 1);
			break;
		}
		/* fall through */
	case TALLY_CALL:
		qemu_plugin_register_vcpu_insn_exec_cb(piece->head, add_by_call,
						       QEMU_PLUGIN_CB_NO_REGS,
						       userdata(t, number));
		break;
	case TALLY_ACCESS:
		qemu_plugin_register_vcpu_mem_cb(piece->head, add_by_access,
						 QEMU_PLUGIN_CB_NO_REGS,
						 QEMU_PLUGIN_MEM_RW, userdata(t, number));
		break;
	}
}

void tally_close(struct tally_piece *piece)
{
	if (!piece->insns)
		return;
	if (piece->function == FUNCTION_USER)
		add_tally(piece);
	else
		charge_function(piece);
	piece->insns = 0;
	piece->access = TALLY_NONE;
	piece->atomic = false;
}

void tally_plain(struct tally_piece *piece)
{
	if (piece->insns == TALLY_MAX_INSNS)
		tally_close(piece);
	piece->insns++;
}

static void gather_tallies(const uint64_t *row, struct counts *counts)
{
	for (unsigned int number = 0; number < NR_TALLIES; number++) {
		unsigned int insns = number % (TALLY_MAX_INSNS + 1);
		enum tally_access access = number / (TALLY_MAX_INSNS + 1) % NR_TALLY_ACCESSES;
		enum privilege priv = number / (TALLY_MAX_INSNS + 1) / NR_TALLY_ACCESSES;
		uint64_t *event = counts->event[priv];

		event[EV_INSTRUCTIONS] += row[number] * insns;
		if (access == TALLY_LOAD || access == TALLY_LOAD_STORE)
			event[EV_LOADS] += row[number];
		if (access == TALLY_STORE || access == TALLY_LOAD_STORE)
			event[EV_STORES] += row[number];
		if (access == TALLY_DC_ZVA)
			event[EV_DC_ZVA] += row[number];
	}
}

static void gather_functions(const struct functions *f, const uint64_t *row,
			     uint64_t *event)
{
	for (unsigned int n = FUNCTION_UNKNOWN; n < f->nr; n++) {
		event[EV_INSTRUCTIONS] += row[function_counter(n, FN_INSTRUCTIONS)];
		event[EV_LOADS] += row[function_counter(n, FN_LOADS)];
		event[EV_STORES] += row[function_counter(n, FN_STORES)];
		event[EV_DC_ZVA] += row[function_counter(n, FN_DC_ZVA)];
	}
}

void tally_gather(const struct tallies *t, unsigned int cpu, struct counts *counts)
{
	gather_tallies(counters_row(&t->counters, cpu), counts);
	if (functions_wanted(&t->functions))
		gather_functions(&t->functions, counters_row(&t->functions.counters, cpu),
				 counts->event[PRIV_KERNEL]);
}
