/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a thread has learned of its instructions: one that read a page before the
 * page was written will do so again.
 *
 * Each lesson, which is a zero page that a write of the thread replaced, pays for
 * a number of pages at the next reads of the instruction, or for one huge page.
 * Then a read maps a zero page again, as a probe. Hence there are never more than
 * WRITE_INTENT_CREDIT pages in vain for each lesson. A thread shares nothing and
 * inherits nothing.
 */
#ifndef _LINUX_WRITE_INTENT_LEARN_H
#define _LINUX_WRITE_INTENT_LEARN_H

#include <linux/mm.h>
#include <linux/ptrace.h>
#include <linux/sched/task_stack.h>
#include <linux/userfaultfd_k.h>

/*
 * For one test together with VM_WRITE, which userfaultfd_armed() would make two.
 * A kernel without userfaultfd has no name for the flags.
 */
#ifndef __VM_UFFD_FLAGS
#define __VM_UFFD_FLAGS		VM_NONE
#endif

/* The most that a lesson pays for: one read of 64 is a probe */
#define WRITE_INTENT_CREDIT	63

DECLARE_STATIC_KEY_FALSE(write_intent_learn);

#ifdef CONFIG_WRITE_INTENT_LEARN

void write_intent_lesson(struct write_intent_memory *memory, unsigned long address);

static inline unsigned int write_intent_slot(unsigned long pc)
{
	return pc / 4 % WRITE_INTENT_SLOTS;
}

/* The instruction at @pc reads the page at @address. Is anything known of it? */
static __always_inline bool
write_intent_known(struct write_intent_memory *memory, unsigned long pc, unsigned long address)
{
	memory->address = address;
	memory->pc = pc;

	return memory->pcs[write_intent_slot(pc)] == (u32)pc;
}

/*
 * Pay for the page, or huge page, of the last read. Without credit the read is a
 * probe; if the one before was not written, the instruction begins anew.
 */
static __always_inline bool write_intent_spend(struct write_intent_memory *memory, bool huge)
{
	struct write_intent_known *known = &memory->known[write_intent_slot(memory->pc)];

	if (known->credit) {
		known->credit = huge ? 0 : known->credit - 1;
		return true;
	}
	if (known->probing)
		known->grant = 0;
	known->probing = true;

	return false;
}

/*
 * Is the instruction of a read fault at @address expected to write there? A guess
 * must not be seen by anyone but for its page.
 */
static __always_inline bool
vmf_write_intent_learned(struct vm_area_struct *vma, unsigned int flags,
			 unsigned long address, bool huge)
{
	struct write_intent_memory *memory;
	unsigned long pc;

	if (!static_branch_unlikely(&write_intent_learn) || !(flags & FAULT_FLAG_USER))
		return false;

	memory = &current->write_intent;
	pc = instruction_pointer(current_pt_regs());

	return write_intent_known(memory, pc, address) &&
	       (vma->vm_flags & (VM_WRITE | __VM_UFFD_FLAGS)) == VM_WRITE &&
	       write_intent_spend(memory, huge);
}

/* A write replaced the zero page at the address of @vmf. */
static __always_inline void vmf_write_intent_lesson(const struct vm_fault *vmf)
{
	if (static_branch_unlikely(&write_intent_learn) && vmf->flags & FAULT_FLAG_USER)
		write_intent_lesson(&current->write_intent, vmf->address);
}

#else

static inline bool
vmf_write_intent_learned(struct vm_area_struct *vma, unsigned int flags,
			 unsigned long address, bool huge)
{
	return false;
}

static inline void vmf_write_intent_lesson(const struct vm_fault *vmf)
{
}

#endif /* CONFIG_WRITE_INTENT_LEARN */

#endif /* _LINUX_WRITE_INTENT_LEARN_H */
