/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The lines that DC ZVA writes. QEMU makes no memory callback for it, so its
 * address is read from its register, which takes an API that has registers.
 */
#ifndef FT_ZVA_H
#define FT_ZVA_H

#include <stdint.h>

#include "plugin_api.h"
#include "pmu.h"

#if FT_HAS_REGISTERS
struct zva {
	struct pmu *pmu;
	struct {
		struct qemu_plugin_register *x[31];
		GByteArray *value;
	} cpu[MAX_CPUS];
} USERDATA_CONTEXT;

/* To be called once on each vCPU, which is when its registers can be listed. */
void zva_find_registers(struct zva *z, unsigned int cpu);

/*
 * While a block is translated: @after is the instruction after DC ZVA Xt, @rt being
 * t, or that itself where the block ends with it.
 */
void zva_watch(struct zva *z, struct qemu_plugin_insn *after, unsigned int rt,
	       enum privilege priv);
#endif

#endif
