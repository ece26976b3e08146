/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __ASM_GENERIC_WRITE_INTENT_H
#define __ASM_GENERIC_WRITE_INTENT_H

#include <linux/mm.h>

/* What follows a read of a missing page, as far as the architecture can tell. */
enum write_intent {
	WRITE_INTENT_NONE,
	WRITE_INTENT_LIKELY,	/* a write, or none: nothing may depend on it */
	WRITE_INTENT_CERTAIN,	/* a write, or a fault for the lack of permission */
};

#ifndef arch_write_intent
static inline enum write_intent
arch_write_intent(const struct vm_fault *vmf, struct vm_area_struct *vma,
		  unsigned int flags)
{
	return WRITE_INTENT_NONE;
}
#endif

#endif /* __ASM_GENERIC_WRITE_INTENT_H */
