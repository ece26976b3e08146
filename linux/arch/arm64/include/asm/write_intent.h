/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __ASM_WRITE_INTENT_H
#define __ASM_WRITE_INTENT_H

#include <linux/cpufeature.h>
#include <linux/jump_label.h>
#include <linux/mm.h>
#include <linux/mmu_context.h>
#include <linux/percpu-defs.h>
#include <linux/tracepoint-defs.h>
#include <linux/uaccess.h>
#include <linux/userfaultfd_k.h>

#include <asm/asm-extable.h>
#include <asm/ptrace.h>
#include <asm/sysreg.h>
#include <asm/write_intent_insn.h>

#ifdef CONFIG_ARM64_WRITE_INTENT_FAULT

/* Off: neither key. RMW: the first. Exclusive: both. */
DECLARE_STATIC_KEY_TRUE(write_intent_enabled);
DECLARE_STATIC_KEY_TRUE(write_intent_exclusive);

/* Indexed by enum write_intent. */
DECLARE_PER_CPU(unsigned long [WRITE_INTENT_EXCLUSIVE + 1], write_intent_upgraded);

DECLARE_TRACEPOINT(write_intent_fault);

bool write_intent_text_readable(struct mm_struct *mm,
				const struct pt_regs *regs);
enum write_intent write_intent_rare(struct vm_area_struct *vma,
				    const struct pt_regs *regs, u32 insn);
vm_fault_t write_intent_finish(struct vm_area_struct *vma, unsigned long addr,
			       unsigned int mm_flags, struct pt_regs *regs,
			       u32 insn, vm_fault_t fault);

/*
 * May an instruction turn this fault into a write? Only if the fault is a data
 * abort from user mode, reported as a read (@vm_flags, the permissions of which
 * one will do, then include VM_READ), on memory that may be read and written.
 * Shadow stacks are writable by their own instructions alone. Where the
 * protection key forbids writing, the read is to succeed and the write to be
 * reported.
 */
static __always_inline bool
write_intent_possible(struct vm_area_struct *vma, vm_flags_t vm_flags,
		      unsigned int mm_flags)
{
	const vm_flags_t rw = VM_READ | VM_WRITE;

	return (vma->vm_flags & (rw | VM_SHADOW_STACK)) == rw &&
	       (vm_flags & VM_READ) && (mm_flags & FAULT_FLAG_USER) &&
	       arch_vma_access_permitted(vma, true, false, false);
}

static __always_inline __le32 write_intent_ldtr(unsigned long addr)
{
	/* By name, because the exception table has to name it. */
	register __le32 word asm("x4");

	asm volatile("1:	ldtr	%w0, [%1]\n"
		     "2:\n"
		     _ASM_EXTABLE_UACCESS_ERR_ZERO(1b, 2b, wzr, w4)
		     : "=r" (word)
		     : "r" (addr));

	return word;
}

/*
 * Read the instruction as a load by EL0 would, with the VMA of the fault or
 * the whole mm locked: a fault on the text must fail, not wait for that lock.
 * A64 instructions are little-endian whatever the endianness of the data.
 *
 * The PC needs no access_ok(): EL0 has just executed from it, and an
 * unprivileged load reaches nothing that EL0 does not.
 *
 * Instruction fetches are not checked against allocation tags, so this load
 * must not be either. In asynchronous mode a mismatch would be charged to the
 * task as a signal.
 *
 * Returns 0 if the word cannot be read: UDF #0, which raises no data abort.
 */
static __always_inline u32 write_intent_fetch(unsigned long pc)
{
	__le32 insn;

	pagefault_disable();
	uaccess_ttbr0_enable();
	if (system_supports_mte()) {
		asm volatile(SET_PSTATE_TCO(1));
		insn = write_intent_ldtr(pc);
		asm volatile(SET_PSTATE_TCO(0));
	} else {
		insn = write_intent_ldtr(pc);
	}
	uaccess_ttbr0_disable();
	pagefault_enable();

	return le32_to_cpu(insn);
}

/*
 * The store may never come. In private anonymous memory a write fault in vain
 * costs a page; elsewhere it would dirty a file, or tell a userfaultfd monitor
 * of a write that was none. Shared anonymous memory belongs to a file of shmem.
 * (A VMA without a monitor is one that could be merged with another such.)
 */
static __always_inline bool
write_intent_exclusive_allowed(struct vm_area_struct *vma)
{
	return static_branch_likely(&write_intent_exclusive) &&
	       vma_is_anonymous(vma) &&
	       is_mergeable_vm_userfaultfd_ctx(vma, NULL_VM_UFFD_CTX);
}

/*
 * What the instruction behind a fault is about to do, as far as that may be
 * acted upon, and which it is. Only for faults with write_intent_possible().
 * Counts what is acted upon.
 */
static __always_inline enum write_intent
write_intent_of_fault(struct vm_area_struct *vma, const struct pt_regs *regs,
		      u32 *insn)
{
	enum write_intent intent;

	/* AArch32, or not all of the text can be read */
	if (unlikely(READ_ONCE(vma->vm_mm->context.flags)) &&
	    !write_intent_text_readable(vma->vm_mm, regs))
		return WRITE_INTENT_NONE;

	*insn = write_intent_fetch(regs->pc);
	intent = a64_write_intent_common(*insn);
	if (unlikely(intent == WRITE_INTENT_UNSURE))
		intent = write_intent_rare(vma, regs, *insn);
	if (intent == WRITE_INTENT_NONE)
		return WRITE_INTENT_NONE;

	if (intent == WRITE_INTENT_EXCLUSIVE &&
	    !write_intent_exclusive_allowed(vma))
		return WRITE_INTENT_NONE;

	raw_cpu_inc(write_intent_upgraded[intent]);

	return intent;
}

/*
 * handle_mm_fault() for a fault that may be the first half of an atomic
 * update. The caller's flags describe the fault as the hardware reported it
 * and stay so: what the instruction says holds for this VMA and this call, and
 * is asked anew after a retry.
 */
static __always_inline vm_fault_t
__write_intent_handle_mm_fault(struct vm_area_struct *vma, unsigned long addr,
			       vm_flags_t vm_flags, unsigned int mm_flags,
			       struct pt_regs *regs)
{
	if (static_branch_likely(&write_intent_enabled) &&
	    write_intent_possible(vma, vm_flags, mm_flags)) {
		u32 insn;

		if (write_intent_of_fault(vma, regs, &insn)) {
			vm_fault_t fault;

			fault = handle_mm_fault(vma, addr,
						mm_flags | FAULT_FLAG_WRITE,
						regs);
			if (unlikely(fault) ||
			    tracepoint_enabled(write_intent_fault))
				fault = write_intent_finish(vma, addr, mm_flags,
							    regs, insn, fault);
			return fault;
		}
	}

	return handle_mm_fault(vma, addr, mm_flags, regs);
}

/* The same, out of line: for the slow path. */
vm_fault_t write_intent_handle_mm_fault(struct vm_area_struct *vma,
					unsigned long addr, vm_flags_t vm_flags,
					unsigned int mm_flags,
					struct pt_regs *regs);

#else /* !CONFIG_ARM64_WRITE_INTENT_FAULT */

static inline vm_fault_t
write_intent_handle_mm_fault(struct vm_area_struct *vma, unsigned long addr,
			     vm_flags_t vm_flags, unsigned int mm_flags,
			     struct pt_regs *regs)
{
	return handle_mm_fault(vma, addr, mm_flags, regs);
}

#define __write_intent_handle_mm_fault	write_intent_handle_mm_fault

#endif /* CONFIG_ARM64_WRITE_INTENT_FAULT */

#endif /* __ASM_WRITE_INTENT_H */
