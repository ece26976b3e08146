// SPDX-License-Identifier: GPL-2.0
#include "events.h"

#include "counts.h"
#include "userdata.h"

/* @udata: the number of a TLBI; privilege and event of the others. */
_Static_assert(NR_TLBI <= USERDATA_NUMBERS, "a TLBI has no number in userdata");
_Static_assert(NR_PRIVS * NR_EVENTS <= USERDATA_NUMBERS, "an event has no number in userdata");

static unsigned int event_number(enum privilege priv, enum event event)
{
	return priv * NR_EVENTS + event;
}

static void count_event(struct pmu_cpu *c, unsigned int number)
{
	c->counts.event[number / NR_EVENTS][number % NR_EVENTS]++;
}

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

	count_event(c, userdata_number(udata));
	/*
	 * Until this DSB another CPU may have used the translation that the TLBI
	 * was to remove, and cached it again.
	 */
	if (c->tlbi_unfinished)
		translations_changed(pmu);
	c->tlbi_unfinished = false;
}

static void on_event(unsigned int cpu, void *udata)
{
	struct pmu *pmu = userdata_context(udata);

	count_event(&pmu->cpu[cpu], userdata_number(udata));
}

static void on_mmu_write(unsigned int cpu, void *udata)
{
	(void)cpu;
	translations_changed(userdata_context(udata));
}

void events_watch(struct pmu *pmu, struct qemu_plugin_insn *insn,
		  enum insn_kind kind, uint32_t op, enum privilege priv)
{
	qemu_plugin_vcpu_udata_cb_t cb = on_event;
	unsigned int number = 0;

	switch (kind) {
	case INSN_TLBI:
		cb = on_tlbi;
		number = tlbi_number(op);
		break;
	case INSN_DSB:
		cb = on_dsb;
		number = event_number(priv, EV_DSB);
		break;
	case INSN_ISB:
		number = event_number(priv, EV_ISB);
		break;
	case INSN_ERET:
		number = event_number(priv, EV_ERET);
		break;
	case INSN_SVC:
		number = event_number(priv, EV_SVC);
		break;
	case INSN_IPI:
		number = event_number(priv, EV_IPI);
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
