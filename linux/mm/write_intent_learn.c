// SPDX-License-Identifier: GPL-2.0
/* Write intent that is learned: see write_intent_learn.h */

#include <linux/write_intent_learn.h>

/*
 * A write replaced the zero page at @address. If each probe of the instruction was
 * written, it gets twice as much as before; one that mostly reads gets one page.
 */
void write_intent_lesson(struct write_intent_memory *memory, unsigned long address)
{
	const unsigned int slot = write_intent_slot(memory->pc);
	struct write_intent_known *known = &memory->known[slot];

	if (memory->address != address)
		return;

	count_vm_event(WRITE_INTENT_LESSON);
	if (memory->pcs[slot] != (u32)memory->pc) {
		memory->pcs[slot] = memory->pc;
		known->grant = 0;
	}
	known->grant = min(2 * known->grant + 1, WRITE_INTENT_CREDIT);
	known->credit = known->grant;
	known->probing = false;
}
