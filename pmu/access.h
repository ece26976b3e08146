/* SPDX-License-Identifier: GPL-2.0 */
/* Each access to memory and each fetch, on its way to the caches. */
#ifndef FT_ACCESS_H
#define FT_ACCESS_H

#include <stdint.h>

#include "decode.h"
#include "plugin_api.h"
#include "pmu.h"

/* Call this first: sets the guest whose fetches are counted. */
void access_init(struct pmu *pmu);

/* While a block is translated: @insn, of @kind, is a load or store. */
void access_watch(struct pmu *pmu, struct qemu_plugin_insn *insn,
		  enum insn_kind kind, uint32_t op, enum privilege priv);

/*
 * Likewise for the fetch of @insn. @last_line: the line of the instruction before
 * it in the block, UINT64_MAX for the first.
 */
void access_watch_fetch(struct pmu *pmu, struct qemu_plugin_insn *insn,
			uint64_t *last_line, enum privilege priv);

#endif
