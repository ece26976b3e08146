// SPDX-License-Identifier: GPL-2.0
#include "events.h"

#include "counts.h"
#include "userdata.h"

/* @udata: the number of a TLBI; the privilege of the others. */
_Static_assert(NR_TLBI <= USERDATA_NUMBERS, "a TLBI has no number in userdata");

static void on_tlbi(unsigned int cpu, void *udata)
{
	struct pmu *pmu = userdata_context(udata);
	struct pmu_cpu *c = &pmu->cpu[cpu];

	c->counts.tlbi[userdata_number(udata)]++;
	c->tlbi_unfinished = true;
	translations_changed(pmu);
}

static void on_dsb(unsigned int cpu, void *udata)
{
	struct pmu *pmu = userdata_context(udata);
	struct pmu_cpu *c = &pmu->cpu[cpu];

	c->counts.event[userdata_number(udata)][EV_DSB]++;
	/*
	 * Until this DSB another CPU may have used the translation that the TLBI
	 * was to remove, and cached it again.
	 */
	if (c->tlbi_unfinished)
		translations_changed(pmu);
	c->tlbi_unfinished = false;
}

static void on_isb(unsigned int cpu, void *udata)
{
	struct pmu *pmu = userdata_context(udata);

	pmu->cpu[cpu].counts.event[userdata_number(udata)][EV_ISB]++;
}

static void on_eret(unsigned int cpu, void *udata)
{
	struct pmu *pmu = userdata_context(udata);

	pmu->cpu[cpu].counts.event[userdata_number(udata)][EV_ERET]++;
}

static void on_mmu_write(unsigned int cpu, void *udata)
{
	(void)cpu;
	translations_changed(userdata_context(udata));
}

void events_watch(struct pmu *pmu, struct qemu_plugin_insn *insn,
		  enum insn_kind kind, uint32_t op, enum privilege priv)
{
	qemu_plugin_vcpu_udata_cb_t cb;
	unsigned int number = priv;

	switch (kind) {
	case INSN_TLBI:
		cb = on_tlbi;
		number = tlbi_number(op);
		break;
	case INSN_DSB:
		cb = on_dsb;
		break;
	case INSN_ISB:
		cb = on_isb;
		break;
	case INSN_ERET:
		cb = on_eret;
		break;
	case INSN_MMU_WRITE:
		cb = on_mmu_write;
		break;
	default:
		return;
	}
	qemu_plugin_register_vcpu_insn_exec_cb(insn, cb, QEMU_PLUGIN_CB_NO_REGS,
					       userdata(pmu, number));
}
