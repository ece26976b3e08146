// SPDX-License-Identifier: GPL-2.0
#include "exceptions.h"

#include "counts.h"

/* @offset is in the vectors: the upper half is for exceptions from EL0. */
static void count_exception(struct pmu_cpu *c, uint64_t offset)
{
	enum privilege from = offset < 0x400 ? PRIV_KERNEL : PRIV_USER;

	c->counts.event[from][EV_TAKEN_SYNC + (offset >> 7 & 3)]++;
}

#define VECTORS_SIZE	0x800
#define VECTOR_SIZE	0x80

#if FT_HAS_DISCON
void exceptions_taken(struct pmu *pmu, unsigned int cpu, uint64_t vector)
{
	count_exception(&pmu->cpu[cpu], vector % VECTORS_SIZE);
}
#else
/* The guest of on_possible_vector(): with a block's address, udata is full. */
static struct exceptions *watched;

void exceptions_init(struct exceptions *e, struct pmu *pmu)
{
	e->pmu = pmu;
	watched = e;
}

void exceptions_learn_vectors(struct exceptions *e, uint64_t base)
{
	pmu_lock(e->pmu);
	for (int i = 0; i < MAX_VECTORS; i++) {
		if (!e->vectors[i])
			e->vectors[i] = base;
		if (e->vectors[i] == base)
			break;
	}
	pmu_unlock(e->pmu);
}

static void on_svc(unsigned int cpu, void *udata)
{
	struct exceptions *e = udata;

	e->svc_next[cpu] = true;
}

void exceptions_watch_svc(struct exceptions *e, struct qemu_plugin_insn *insn)
{
	qemu_plugin_register_vcpu_insn_exec_cb(insn, on_svc, QEMU_PLUGIN_CB_NO_REGS, e);
}

/* @va: a block that begins where a vector could be. */
static void on_possible_vector(unsigned int cpu, void *va)
{
	struct exceptions *e = watched;
	uint64_t base = (uintptr_t)va & ~(uintptr_t)(VECTORS_SIZE - 1);

	/* Write only if it is set: other CPUs' flags share the cache line. */
	if (e->svc_next[cpu]) {
		exceptions_learn_vectors(e, base);
		e->svc_next[cpu] = false;
	}
	for (int i = 0; i < MAX_VECTORS && e->vectors[i]; i++)
		if (e->vectors[i] == base)
			count_exception(&e->pmu->cpu[cpu], (uintptr_t)va % VECTORS_SIZE);
}

void exceptions_watch_block(struct qemu_plugin_tb *tb)
{
	uint64_t va = qemu_plugin_tb_vaddr(tb);

	if (va % VECTOR_SIZE == 0)
		qemu_plugin_register_vcpu_tb_exec_cb(tb, on_possible_vector,
						     QEMU_PLUGIN_CB_NO_REGS,
						     (void *)(uintptr_t)va);
}
#endif
