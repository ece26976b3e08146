/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The lines that DC ZVA writes. QEMU makes no memory callback for it, so its
 * address is read from its register, which takes an API that has registers.
 */
#ifndef FT_ZVA_H
#define FT_ZVA_H

#include <stdbool.h>
#include <stdint.h>

#include "hierarchy.h"
#include "plugin_api.h"

struct pmu;

#if FT_HAS_REGISTERS && !FT_HAS_TRANSLATE
/*
 * A page that is cleared has mostly not been accessed before, so its translation
 * is not known, and there is nobody to ask. But a kernel clears pages in its
 * linear map: the gigabytes of its half of the addresses in which every
 * translation so far had the same offset are taken to be linear.
 */
#define NR_LINEAR	64
#define LINEAR_SHIFT	30
/* Translations that have to agree before the next one is taken on trust. */
#define LINEAR_PROOF	8

struct linear_map {
	struct {
		uint64_t number;	/* va >> LINEAR_SHIFT */
		uint64_t pa_minus_va;
		unsigned int agreed;
		bool broken;
	} part[NR_LINEAR];
};
#else
struct linear_map {
	char none;
};
#endif

void zva_note_translation(struct linear_map *map, uint64_t va, uint64_t pa);

#if FT_HAS_REGISTERS
/* To be called once on each vCPU, which is when its registers can be listed. */
void zva_find_registers(struct pmu *pmu, unsigned int cpu);
/* In a callback with QEMU_PLUGIN_CB_R_REGS: Xt of the DC ZVA that just ran. */
void zva_ran(struct pmu *pmu, unsigned int cpu, unsigned int rt,
	     enum privilege priv);
#endif

#endif
