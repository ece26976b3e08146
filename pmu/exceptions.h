/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Exceptions taken: told by QEMU or, without being told, known by the blocks that
 * begin at a vector, which nothing else does. Where the vectors are shows from what
 * is written to VBAR_EL1 and from where an SVC leads.
 */
#ifndef FT_EXCEPTIONS_H
#define FT_EXCEPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "plugin_api.h"
#include "pmu.h"

#if FT_HAS_DISCON
/* CPU @cpu went to @vector with an exception. */
void exceptions_taken(struct pmu *pmu, unsigned int cpu, uint64_t vector);
#else
#define MAX_VECTORS	8

struct exceptions {
	struct pmu *pmu;
	/* VBAR_EL1 values seen; 0 is none, for the guest's are never 0. */
	uint64_t vectors[MAX_VECTORS];
	/* By CPU: its next block is an exception vector. */
	bool svc_next[MAX_CPUS];
};

/* Before all else here: @e, which is zero, is that of the one guest. */
void exceptions_init(struct exceptions *e, struct pmu *pmu);

/* While a block is translated: the block, an SVC in it, a known write of VBAR_EL1. */
void exceptions_watch_block(struct qemu_plugin_tb *tb);
void exceptions_watch_svc(struct exceptions *e, struct qemu_plugin_insn *insn);
void exceptions_learn_vectors(struct exceptions *e, uint64_t base);
#endif

#endif
