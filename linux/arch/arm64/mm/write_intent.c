// SPDX-License-Identifier: GPL-2.0
/*
 * The first touch of a page by an atomic read-modify-write is reported as a
 * read: ESR_ELx.WnR is 0 if a plain read of the address would have faulted too.
 * Only the instruction tells that a write is about to follow.
 */
#include <linux/init.h>
#include <linux/jump_label.h>
#include <linux/mm.h>
#include <linux/sysctl.h>
#include <linux/uaccess.h>

#include <asm/insn.h>
#include <asm/ptrace.h>

/*
 * In execute-only text each attempt fails, at the price of an exception. So
 * many failures of an mm, and nobody tries again: text that is being unmapped
 * or aged fails once or twice.
 */
#define UNREADABLE_TEXT_LIMIT	16

DEFINE_STATIC_KEY_TRUE(write_intent_enabled);

/*
 * A load must not be taken for a write. What the architecture has not allocated
 * never gets as far as a data abort, and may be taken for anything.
 */
static bool aarch64_insn_writes_what_it_reads(u32 insn)
{
	/* Most loads: those with an unsigned offset */
	if (insn & BIT(29) && insn & BIT(24))
		return false;

	/* Bits 14 and 15 without 26: LDAPR and LD64B */
	if (aarch64_insn_is_atomic_op(insn))
		return (insn & (BIT(14) | BIT(15))) != (BIT(14) | BIT(15)) ||
		       insn & BIT(26);

	/* Bit 31 without bit 23: LDXP to the zero register */
	if (aarch64_insn_is_cas_any(insn))
		return insn & BIT(23) || !(insn & BIT(31));

	return aarch64_insn_is_cast(insn) || aarch64_insn_is_atomic_pair(insn);
}

/*
 * Does a write of the page follow the read fault @vmf, or a fault for want of
 * permission? Asked where a zero page would be mapped. Only a fault of the current
 * task in user mode has its registers in task_pt_regs(). Where the kernel asks for
 * a page there is no FAULT_FLAG_USER; where a device does, FAULT_FLAG_REMOTE.
 */
bool __arch_write_intent(const struct vm_fault *vmf)
{
	const unsigned int who = FAULT_FLAG_USER | FAULT_FLAG_REMOTE | FAULT_FLAG_INSTRUCTION;
	const struct pt_regs *regs;
	mm_context_t *context;
	unsigned int failures;
	__le32 insn;

	if ((vmf->flags & who) != FAULT_FLAG_USER || !(vmf->vma->vm_flags & VM_WRITE))
		return false;

	/* AArch32 executes something else */
	regs = task_pt_regs(current);
	if (compat_user_mode(regs))
		return false;

	context = &vmf->vma->vm_mm->context;
	failures = READ_ONCE(context->unreadable_text);
	if (failures == UNREADABLE_TEXT_LIMIT)
		return false;

	/* With a lock of the mm held, a fault on the text must fail */
	pagefault_disable();
	__raw_get_user(insn, (__le32 __user *)regs->pc, failed);
	pagefault_enable();

	return aarch64_insn_writes_what_it_reads(le32_to_cpu(insn));

failed:
	pagefault_enable();
	WRITE_ONCE(context->unreadable_text, failures + 1);
	return false;
}

static const struct ctl_table write_intent_table[] = {
	{
		.procname	= "write_intent",
		.data		= &write_intent_enabled.key,
		.mode		= 0644,
		.proc_handler	= proc_do_static_key,
	},
};

static int __init write_intent_init(void)
{
	register_sysctl_init("vm", write_intent_table);
	return 0;
}
subsys_initcall(write_intent_init);

#ifdef CONFIG_ARM64_WRITE_INTENT_FAULT_KUNIT_TEST
#include "write_intent_kunit.c"
#endif
