/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Exceptions taken. QEMU reports them or, if its API cannot, a block that begins at
 * a vector shows one, since no other block does. Writes to VBAR_EL1 and the targets
 * of SVCs show where the vectors are.
 */
#ifndef FT_EXCEPTIONS_H
#define FT_EXCEPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "plugin_api.h"
#include "pmu.h"

#if FT_HAS_DISCON
/* CPU @cpu took an exception to @vector. */
void exceptions_taken(struct pmu *pmu, unsigned int cpu, uint64_t vector);
#else
#define MAX_VECTORS	8

struct exceptions {
	struct pmu *pmu;
	/* VBAR_EL1 values seen; 0: none, since the guest's are never 0. */
	uint64_t vectors[MAX_VECTORS];
	/* By CPU: its next block is an exception vector. */
	bool svc_next[MAX_CPUS];
};

/* Call this first: @e, all zero, is that of the only guest. */
void exceptions_init(struct exceptions *e, struct pmu *pmu);

/* While a block is translated: the block, an SVC in it, a known write of VBAR_EL1. */
void exceptions_watch_block(struct qemu_plugin_tb *tb);
void exceptions_watch_svc(struct exceptions *e, struct qemu_plugin_insn *insn);
void exceptions_learn_vectors(struct exceptions *e, uint64_t base);
#endif

#endif
