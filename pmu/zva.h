/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The lines that DC ZVA writes. QEMU makes no memory callback for it. Its address
 * is read from its register, which requires an API that can read registers.
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
		uint32_t has;	/* a bit for each of them: a handle may be 0 */
		GByteArray *value;
	} cpu[MAX_CPUS];
} USERDATA_CONTEXT;

/* Call this once on each vCPU: only there can its registers be listed. */
void zva_find_registers(struct zva *z, unsigned int cpu);

/*
 * While a block is translated: @after is the instruction after DC ZVA Xt, or DC ZVA
 * itself if the block ends with it; @rt is t.
 */
void zva_watch(struct zva *z, struct qemu_plugin_insn *after, unsigned int rt,
	       enum privilege priv);
#endif

#endif
