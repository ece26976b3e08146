// SPDX-License-Identifier: GPL-2.0
/* The instructions that are counted by a call each. */
#include "callbacks.h"
#include "decode.h"
#include "pmu.h"

void on_tlbi(unsigned int cpu, void *packed)
{
	struct pmu_cpu *c = &the_pmu.cpu[cpu];

	c->counts.tlbi[tlbi_number((uintptr_t)packed >> 1)]++;
	c->tlbi_unfinished = true;
	translations_changed(&the_pmu);
}

void on_dsb(unsigned int cpu, void *packed)
{
	struct pmu_cpu *c = &the_pmu.cpu[cpu];

	c->counts.event[(uintptr_t)packed & 1][EV_DSB]++;
	/*
	 * Until here another CPU may still have used, and had entered anew, what
	 * the TLBI was to remove.
	 */
	if (c->tlbi_unfinished)
		translations_changed(&the_pmu);
	c->tlbi_unfinished = false;
}

void on_isb(unsigned int cpu, void *packed)
{
	the_pmu.cpu[cpu].counts.event[(uintptr_t)packed & 1][EV_ISB]++;
}

void on_eret(unsigned int cpu, void *packed)
{
	the_pmu.cpu[cpu].counts.event[(uintptr_t)packed & 1][EV_ERET]++;
}

void on_mmu_write(unsigned int cpu, void *packed)
{
	(void)cpu;
	(void)packed;
	translations_changed(&the_pmu);
}

static void count_marker(unsigned int cpu, void *packed)
{
	the_pmu.cpu[cpu].counts.event[(uintptr_t)packed & 1][EV_INSTRUCTIONS]++;
}

void on_region_begin(unsigned int cpu, void *packed)
{
	pmu_lock(&the_pmu);
	count_marker(cpu, packed);
	region_begin(&the_pmu);
	pmu_unlock(&the_pmu);
}

void on_region_end(unsigned int cpu, void *packed)
{
	pmu_lock(&the_pmu);
	region_end(&the_pmu);
	count_marker(cpu, packed);
	pmu_unlock(&the_pmu);
}

#if FT_HAS_REGISTERS
void on_zva(unsigned int cpu, void *packed)
{
	pmu_lock(&the_pmu);
	zva_ran(&the_pmu, cpu, insn_rt((uintptr_t)packed >> 1), (uintptr_t)packed & 1);
	pmu_unlock(&the_pmu);
}
#endif
