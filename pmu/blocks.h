/* SPDX-License-Identifier: GPL-2.0 */
/* Each block that QEMU translates: which calls it makes and what is counted. */
#ifndef FT_BLOCKS_H
#define FT_BLOCKS_H

#include "exceptions.h"
#include "plugin_api.h"
#include "pmu.h"
#include "regions.h"
#include "stacks.h"
#include "zva.h"

/* The privilege to which the instructions of a block are counted. */
struct blocks {
	struct pmu *pmu;
	struct regions *regions;
	struct stacks *stacks;
#if FT_HAS_REGISTERS
	struct zva *zva;
#endif
#if !FT_HAS_DISCON
	struct exceptions *exceptions;
#endif
};

void blocks_translate(const struct blocks *b, struct qemu_plugin_tb *tb);

#endif
