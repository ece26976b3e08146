// SPDX-License-Identifier: GPL-2.0
/*
 * Write-intent faults.
 *
 * The first touch of a page by an atomic read-modify-write, or by the
 * load-exclusive of an LL/SC loop, is reported as a read. Taken at its word it
 * maps the zero page, and the write that follows faults again, copies the page
 * and invalidates the TLB. Here such a fault is handled as the write fault it
 * is about to become.
 *
 * An upgrade is a guess about the next few instructions and must not be seen
 * but by the page it allocates. So it is made only where the instruction has,
 * or a following store would have, the right to write; and if the write fault
 * cannot be served, the read fault is, and the signal is left to the access
 * that is due one.
 *
 * What every fault passes through is in asm/write_intent.h.
 */

#include <linux/init.h>
#include <linux/jiffies.h>
#include <linux/kobject.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include <asm/write_intent.h>

#define CREATE_TRACE_POINTS
#include "trace_write_intent.h"

DEFINE_STATIC_KEY_TRUE(write_intent_enabled);
DEFINE_STATIC_KEY_TRUE(write_intent_exclusive);

/*
 * Not incremented with preemption disabled, for the price of that: a task that
 * is preempted in the middle may undo the counts of others.
 */
DEFINE_PER_CPU(unsigned long [WRITE_INTENT_EXCLUSIVE + 1], write_intent_upgraded);
static DEFINE_PER_CPU(unsigned long, write_intent_fetch_failed);

/*
 * A fetch fails for as long as the text is execute-only, at the price of an
 * exception taken at EL1. Each mm therefore remembers the 2 MiB regions, folded
 * into the bits of a word, whose text could not be read. All are forgotten after
 * a second, because the failure may have been a passing one. That bounds the
 * failed fetches of a process by BITS_PER_LONG a second.
 *
 * Threads update the word without a lock. A lost update costs one more failed
 * fetch, a stale bit one more fault that is not upgraded.
 */
#define UNREADABLE_TEXT_SHIFT	21
#define UNREADABLE_TEXT_EXPIRY	HZ

static unsigned long text_region_bit(unsigned long pc)
{
	return BIT((pc >> UNREADABLE_TEXT_SHIFT) % BITS_PER_LONG);
}

bool write_intent_text_readable(struct mm_struct *mm,
				const struct pt_regs *regs)
{
	unsigned long flags = READ_ONCE(mm->context.flags);

	if (flags & MMCF_AARCH32)
		return false;

	if (time_after(jiffies, READ_ONCE(mm->context.unreadable_text_since) +
				UNREADABLE_TEXT_EXPIRY)) {
		WRITE_ONCE(mm->context.unreadable_text, 0);
		WRITE_ONCE(mm->context.flags, flags & ~MMCF_UNREADABLE_TEXT);
		return true;
	}

	return !(READ_ONCE(mm->context.unreadable_text) &
		 text_region_bit(regs->pc));
}

static void text_unreadable(struct mm_struct *mm, const struct pt_regs *regs)
{
	unsigned long regions = READ_ONCE(mm->context.unreadable_text);

	if (!regions)
		WRITE_ONCE(mm->context.unreadable_text_since, jiffies);
	WRITE_ONCE(mm->context.unreadable_text,
		   regions | text_region_bit(regs->pc));
	WRITE_ONCE(mm->context.flags,
		   READ_ONCE(mm->context.flags) | MMCF_UNREADABLE_TEXT);

	this_cpu_inc(write_intent_fetch_failed);
}

/* The answer where a64_write_intent_common() is unsure. */
enum write_intent write_intent_rare(struct vm_area_struct *vma,
				    const struct pt_regs *regs, u32 insn)
{
	if (!insn)
		text_unreadable(vma->vm_mm, regs);

	return a64_write_intent_rare(insn);
}

/*
 * What is left to do after a write fault that was reported as a read, unless
 * it was served at once and nobody traces it.
 *
 * After an error the task must be told what it would have been told without
 * the upgrade, down to ESR_ELx: so do what the hardware asked for. If the read
 * is served, the instruction faults again, as a write, and that is the fault
 * to report. Running out of memory is not reported but repeated.
 */
vm_fault_t write_intent_finish(struct vm_area_struct *vma, unsigned long addr,
			       unsigned int mm_flags, struct pt_regs *regs,
			       u32 insn, vm_fault_t fault)
{
	enum write_intent intent = a64_write_intent(insn);

	if (!(fault & (VM_FAULT_ERROR | VM_FAULT_RETRY))) {
		trace_write_intent_fault(addr, regs->pc, insn, intent);
		return fault;
	}

	/* Nothing was upgraded. */
	raw_cpu_dec(write_intent_upgraded[intent]);

	/* With either of the first two the lock is gone, and maybe the VMA. */
	if (fault & (VM_FAULT_RETRY | VM_FAULT_COMPLETED | VM_FAULT_OOM))
		return fault;

	return handle_mm_fault(vma, addr, mm_flags, regs);
}

vm_fault_t write_intent_handle_mm_fault(struct vm_area_struct *vma,
					unsigned long addr, vm_flags_t vm_flags,
					unsigned int mm_flags,
					struct pt_regs *regs)
{
	return __write_intent_handle_mm_fault(vma, addr, vm_flags, mm_flags,
					      regs);
}

enum write_intent_mode {
	WRITE_INTENT_MODE_OFF,
	WRITE_INTENT_MODE_RMW,
	WRITE_INTENT_MODE_EXCLUSIVE,	/* and RMW */
};

static const char * const write_intent_mode_names[] = {
	[WRITE_INTENT_MODE_OFF]		= "off",
	[WRITE_INTENT_MODE_RMW]		= "rmw",
	[WRITE_INTENT_MODE_EXCLUSIVE]	= "exclusive",
};

static enum write_intent_mode write_intent_mode = WRITE_INTENT_MODE_EXCLUSIVE;
static DEFINE_MUTEX(write_intent_mode_lock);

static int __init write_intent_early_param(char *arg)
{
	int mode = arg ? match_string(write_intent_mode_names,
				      ARRAY_SIZE(write_intent_mode_names), arg) :
			 -EINVAL;

	if (mode < 0) {
		pr_warn("write_intent: \"%s\" is none of off, rmw, exclusive\n",
			arg ? arg : "");
		return mode;
	}

	write_intent_mode = mode;
	return 0;
}
early_param("write_intent", write_intent_early_param);

static void write_intent_set_mode(enum write_intent_mode mode)
{
	mutex_lock(&write_intent_mode_lock);
	WRITE_ONCE(write_intent_mode, mode);
	if (mode >= WRITE_INTENT_MODE_RMW)
		static_branch_enable(&write_intent_enabled);
	else
		static_branch_disable(&write_intent_enabled);
	if (mode >= WRITE_INTENT_MODE_EXCLUSIVE)
		static_branch_enable(&write_intent_exclusive);
	else
		static_branch_disable(&write_intent_exclusive);
	mutex_unlock(&write_intent_mode_lock);
}

static ssize_t mode_show(struct kobject *kobj, struct kobj_attribute *attr,
			 char *buf)
{
	enum write_intent_mode mode = READ_ONCE(write_intent_mode);
	int i, len = 0;

	for (i = 0; i < ARRAY_SIZE(write_intent_mode_names); i++)
		len += sysfs_emit_at(buf, len, i == mode ? "%s[%s]" : "%s%s",
				     i ? " " : "", write_intent_mode_names[i]);
	len += sysfs_emit_at(buf, len, "\n");

	return len;
}

static ssize_t mode_store(struct kobject *kobj, struct kobj_attribute *attr,
			  const char *buf, size_t count)
{
	int mode = sysfs_match_string(write_intent_mode_names, buf);

	if (mode < 0)
		return mode;

	write_intent_set_mode(mode);
	return count;
}

static struct kobj_attribute mode_attr = __ATTR_RW(mode);

#define WRITE_INTENT_COUNTER_ATTR(name, counter)			\
static ssize_t name##_show(struct kobject *kobj,			\
			   struct kobj_attribute *attr, char *buf)	\
{									\
	unsigned long sum = 0;						\
	int cpu;							\
									\
	for_each_possible_cpu(cpu)					\
		sum += per_cpu(counter, cpu);				\
									\
	return sysfs_emit(buf, "%lu\n", sum);				\
}									\
static struct kobj_attribute name##_attr = __ATTR_RO(name)

WRITE_INTENT_COUNTER_ATTR(upgraded_rmw,
			  write_intent_upgraded[WRITE_INTENT_RMW]);
WRITE_INTENT_COUNTER_ATTR(upgraded_exclusive,
			  write_intent_upgraded[WRITE_INTENT_EXCLUSIVE]);
WRITE_INTENT_COUNTER_ATTR(fetch_failed, write_intent_fetch_failed);

static struct attribute *write_intent_attrs[] = {
	&mode_attr.attr,
	&upgraded_rmw_attr.attr,
	&upgraded_exclusive_attr.attr,
	&fetch_failed_attr.attr,
	NULL,
};

static const struct attribute_group write_intent_group = {
	.name = "write_intent",
	.attrs = write_intent_attrs,
};

static int __init write_intent_init(void)
{
	/* Early parameters are too early to patch code: do it here. */
	write_intent_set_mode(write_intent_mode);

	return sysfs_create_group(mm_kobj, &write_intent_group);
}
subsys_initcall(write_intent_init);
