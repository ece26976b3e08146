/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _LINUX_WRITE_INTENT_H
#define _LINUX_WRITE_INTENT_H

#include <linux/mm.h>
#include <linux/tracepoint-defs.h>

/* What follows a read of a missing page, as far as anyone can tell. */
enum write_intent {
	WRITE_INTENT_NONE,
	WRITE_INTENT_LIKELY,	/* a write, or none: nothing may depend on it */
	WRITE_INTENT_CERTAIN,	/* a write, or a fault for the lack of permission */
};

/* By vm.write_intent; exclusive only with rmw */
DECLARE_STATIC_KEY_FALSE(write_intent_rmw);
DECLARE_STATIC_KEY_FALSE(write_intent_exclusive);

#ifdef CONFIG_ARCH_WRITE_INTENT
#include <asm/write_intent.h>
#else
static inline enum write_intent arch_write_intent(struct vm_area_struct *vma, unsigned int flags)
{
	return WRITE_INTENT_NONE;
}
#endif

/* Out of line: callers with the tracepoint in them inline less of the rest */
DECLARE_TRACEPOINT(write_intent);
void do_trace_write_intent(const struct vm_fault *vmf, enum write_intent intent);

/*
 * What follows the read fault @vmf, which is about to map a zero page. @vma and
 * @flags are those of @vmf, from registers.
 */
static __always_inline enum write_intent
vmf_write_intent(const struct vm_fault *vmf, struct vm_area_struct *vma,
		 unsigned int flags)
{
	enum write_intent intent = arch_write_intent(vma, flags);

	if (intent != WRITE_INTENT_NONE && tracepoint_enabled(write_intent))
		do_trace_write_intent(vmf, intent);

	return intent;
}

#endif /* _LINUX_WRITE_INTENT_H */
