// SPDX-License-Identifier: GPL-2.0
#include "counts.h"

#include <stddef.h>

void counts_add(struct counts *to, const struct counts *from)
{
	uint64_t *t = (uint64_t *)to;
	const uint64_t *f = (const uint64_t *)from;

	for (size_t i = 0; i < NR_COUNTS; i++)
		t[i] += f[i];
}

void counts_subtract(struct counts *to, const struct counts *from)
{
	uint64_t *t = (uint64_t *)to;
	const uint64_t *f = (const uint64_t *)from;

	for (size_t i = 0; i < NR_COUNTS; i++)
		t[i] -= f[i];
}

const char *event_name(enum event event)
{
	static const char * const names[NR_EVENTS] = {
		[EV_INSTRUCTIONS] = "instructions",
		[EV_LOADS] = "loads",
		[EV_STORES] = "stores",
		[EV_DC_ZVA] = "dc_zva",
		[EV_DSB] = "dsb",
		[EV_ISB] = "isb",
		[EV_TAKEN_SYNC] = "exceptions_taken_sync",
		[EV_TAKEN_IRQ] = "exceptions_taken_irq",
		[EV_TAKEN_FIQ] = "exceptions_taken_fiq",
		[EV_TAKEN_SERROR] = "exceptions_taken_serror",
		[EV_ERET] = "exceptions_returned",
		[EV_DEVICE] = "device_accesses",
		[EV_UNTRANSLATED] = "untranslated_accesses",
		[EV_ZVA_UNPLACED] = "dc_zva_unplaced",
		[EV_FETCH_UNPLACED] = "fetches_unplaced",
	};

	return names[event];
}
