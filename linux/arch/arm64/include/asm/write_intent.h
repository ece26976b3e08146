/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The first touch of a page by an atomic read-modify-write, or by the
 * load-exclusive of an LL/SC loop, is reported as a read: ESR_ELx.WnR is 0 if a
 * plain read of the address would have faulted too. Only the instruction tells
 * that a write is about to follow.
 */
#ifndef __ASM_WRITE_INTENT_H
#define __ASM_WRITE_INTENT_H

#include <linux/compat.h>
#include <linux/kasan-enabled.h>
#include <linux/ptrace.h>
#include <linux/sched/task_stack.h>
#include <linux/uaccess.h>
#include <linux/userfaultfd_k.h>

#include <asm/insn.h>
#include <asm/mte-kasan.h>

/*
 * A load must not be taken for a write. What the architecture has not allocated
 * never gets as far as a data abort, and may be taken for anything.
 */
static __always_inline enum write_intent aarch64_insn_write_intent(u32 insn)
{
	if (insn & BIT(29)) {
		/* Most loads: those with an unsigned offset */
		if (likely(insn & BIT(24)))
			return WRITE_INTENT_NONE;
		/* Bit by bit is shorter than by the masks that GCC makes of it */
		barrier();
		/* Pairs and other offsets */
		if (!(insn & BIT(28)) || insn & 0xc00 || !(insn & BIT(21)))
			return WRITE_INTENT_NONE;
		/* With both of these bits, LDAPR and LD64B, or else STF<op> */
		if (!(insn & BIT(14)))
			return WRITE_INTENT_CERTAIN;
		if (!(insn & BIT(15)) || insn & BIT(26))
			return WRITE_INTENT_CERTAIN;
	} else {
		/* Bit 31 without bit 23: LDXP to the zero register */
		if (aarch64_insn_is_cas_any(insn) &&
		    (insn & BIT(23) || !(insn & BIT(31))))
			return WRITE_INTENT_CERTAIN;
		if (aarch64_insn_is_ldxr(insn) || aarch64_insn_is_ldxp(insn) ||
		    aarch64_insn_is_ldtxr(insn))
			return WRITE_INTENT_LIKELY;
		if (aarch64_insn_is_cast(insn) ||
		    aarch64_insn_is_atomic_pair(insn))
			return WRITE_INTENT_CERTAIN;
	}

	return WRITE_INTENT_NONE;
}

/*
 * AArch32 executes something else there. A likely write must not be seen by
 * anyone but for its page.
 */
static __always_inline enum write_intent
write_intent_if_allowed(struct vm_area_struct *vma, enum write_intent intent)
{
	if (!(vma->vm_flags & VM_WRITE) || is_compat_task())
		return WRITE_INTENT_NONE;
	if (intent == WRITE_INTENT_LIKELY &&
	    (!static_branch_likely(&write_intent_exclusive) ||
	     userfaultfd_armed(vma)))
		return WRITE_INTENT_NONE;

	return intent;
}

/*
 * For faults that are reported as reads. Nearly all of them are: hence the
 * instruction is looked at before what matters to few. The faults of a device
 * that shares the page tables are handled by a kernel thread, whose pc is 0 and
 * cannot be read.
 */
static __always_inline enum write_intent
arch_write_intent(struct vm_area_struct *vma, unsigned int flags)
{
	__le32 word = 0;	/* no instruction, if it cannot be read */

	if (!static_branch_likely(&write_intent_rmw) ||
	    !(flags & FAULT_FLAG_USER))
		return WRITE_INTENT_NONE;

	/*
	 * With a lock of the mm held, a fault on the text must fail. Fetches
	 * are not checked against allocation tags, so this must not be either.
	 */
	pagefault_disable();
	if (kasan_hw_tags_enabled())
		mte_enable_tco();
	__raw_get_user(word, (__le32 __user *)current_pt_regs()->pc, failed);
failed:
	if (kasan_hw_tags_enabled())
		mte_disable_tco();
	pagefault_enable();

	/* Each intent as a constant, so that none is compared with again */
	switch (aarch64_insn_write_intent(le32_to_cpu(word))) {
	case WRITE_INTENT_CERTAIN:
		return write_intent_if_allowed(vma, WRITE_INTENT_CERTAIN);
	case WRITE_INTENT_LIKELY:
		return write_intent_if_allowed(vma, WRITE_INTENT_LIKELY);
	default:
		return WRITE_INTENT_NONE;
	}
}

#endif /* __ASM_WRITE_INTENT_H */
