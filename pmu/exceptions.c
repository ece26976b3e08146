// SPDX-License-Identifier: GPL-2.0
/* Exceptions taken: told by QEMU, or known by where blocks begin. */
#include "callbacks.h"
#include "pmu.h"

/* @offset is into the vectors: the upper half is for what comes from EL0. */
static void count_exception(struct pmu_cpu *c, uint64_t offset)
{
	enum privilege from = offset < 0x400 ? PRIV_KERNEL : PRIV_USER;

	c->counts.event[from][EV_TAKEN_SYNC + (offset >> 7 & 3)]++;
}

#define VECTORS_SIZE	0x800
#define VECTOR_SIZE	0x80

#if FT_HAS_DISCON
static void discontinuity(unsigned int cpu, uint64_t to)
{
	count_exception(&the_pmu.cpu[cpu], to % VECTORS_SIZE);
}

#if FT_API >= 7
void on_discontinuity(unsigned int cpu, enum qemu_plugin_discon_type type,
		      uint64_t from, uint64_t to, void *udata)
{
	(void)type;
	(void)from;
	(void)udata;
	discontinuity(cpu, to);
}
#else
void on_discontinuity(qemu_plugin_id_t id, unsigned int cpu,
		      enum qemu_plugin_discon_type type, uint64_t from,
		      uint64_t to)
{
	(void)id;
	(void)type;
	(void)from;
	discontinuity(cpu, to);
}
#endif
#else
/*
 * Without being told of exceptions, they are known by the blocks that begin at a
 * vector, which nothing else does. Where the vectors are shows from what is
 * written to VBAR_EL1 and from where an SVC leads.
 */
void learn_vectors(struct pmu *pmu, uint64_t base)
{
	pmu_lock(pmu);
	for (int i = 0; i < MAX_VECTORS; i++) {
		if (!pmu->vectors[i])
			pmu->vectors[i] = base;
		if (pmu->vectors[i] == base)
			break;
	}
	pmu_unlock(pmu);
}

void on_svc(unsigned int cpu, void *packed)
{
	(void)packed;
	the_pmu.cpu[cpu].svc_next = true;
}

/* @va: of a block that begins where a vector could be. */
static void on_possible_vector(unsigned int cpu, void *va)
{
	struct pmu_cpu *c = &the_pmu.cpu[cpu];
	uint64_t base = (uintptr_t)va & ~(uintptr_t)(VECTORS_SIZE - 1);

	if (c->svc_next)
		learn_vectors(&the_pmu, base);
	c->svc_next = false;
	for (int i = 0; i < MAX_VECTORS && the_pmu.vectors[i]; i++)
		if (the_pmu.vectors[i] == base)
			count_exception(c, (uintptr_t)va % VECTORS_SIZE);
}

void watch_exceptions(struct qemu_plugin_tb *tb)
{
	uint64_t va = qemu_plugin_tb_vaddr(tb);

	if (va % VECTOR_SIZE == 0)
		qemu_plugin_register_vcpu_tb_exec_cb(tb, on_possible_vector,
						     QEMU_PLUGIN_CB_NO_REGS,
						     (void *)(uintptr_t)va);
}
#endif
