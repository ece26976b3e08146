/* SPDX-License-Identifier: GPL-2.0 */
/* The instructions that are counted by one call each. */
#ifndef FT_EVENTS_H
#define FT_EVENTS_H

#include <stdint.h>

#include "decode.h"
#include "plugin_api.h"
#include "pmu.h"

/*
 * While a block is translated: @insn is a TLBI, DSB, ISB, ERET or SVC, sends
 * interrupts to other CPUs, or changes translation.
 */
void events_watch(struct pmu *pmu, struct qemu_plugin_insn *insn,
		  enum insn_kind kind, uint32_t op, enum privilege priv);

#endif
