/* SPDX-License-Identifier: GPL-2.0 */
/* Each block that QEMU translates: what is to be called for, and counted. */
#ifndef FT_BLOCKS_H
#define FT_BLOCKS_H

#include "exceptions.h"
#include "plugin_api.h"
#include "pmu.h"
#include "regions.h"
#include "zva.h"

/* Whose counts the instructions of a block go to. */
struct blocks {
	struct pmu *pmu;
	struct regions *regions;
#if FT_HAS_REGISTERS
	struct zva *zva;
#endif
#if !FT_HAS_DISCON
	struct exceptions *exceptions;
#endif
};

void blocks_translate(const struct blocks *b, struct qemu_plugin_tb *tb);

#endif
