/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __ASM_COLOR_ZERO_PAGE_H
#define __ASM_COLOR_ZERO_PAGE_H

#ifdef CONFIG_ARM64_COLOR_ZERO_PAGE

#include <linux/bits.h>
#include <linux/jump_label.h>
#include <linux/types.h>

#include <asm/page-def.h>

#define __HAVE_COLOR_ZERO_PAGE

#define ZERO_PAGES		CONFIG_ARM64_COLOR_ZERO_PAGE_MAX

extern const u8 empty_zero_page[ZERO_PAGES * PAGE_SIZE];

/* What is_zero_pfn() covers: all that could be mapped, not what is in use */
#define zero_page_mask		((ZERO_PAGES - 1) * PAGE_SIZE)

/* The pfn of the first, and above it the number in use less one: one load */
extern unsigned long arm64_zero_pages;
#define ZERO_PAGES_MASK_SHIFT	56

/* Set once more than one is in use */
DECLARE_STATIC_KEY_FALSE(arm64_zero_pages_colored);

void arch_setup_zero_pages(void);

static inline unsigned long arm64_zero_pfn(unsigned long addr)
{
	unsigned long pfn = arm64_zero_pages;

	if (static_branch_likely(&arm64_zero_pages_colored))
		pfn += (pfn & addr << (ZERO_PAGES_MASK_SHIFT - PAGE_SHIFT)) >>
		       ZERO_PAGES_MASK_SHIFT;

	return pfn & GENMASK(ZERO_PAGES_MASK_SHIFT - 1, 0);
}

#define ZERO_PAGE(vaddr)	pfn_to_page(arm64_zero_pfn((unsigned long)(vaddr)))

#endif /* CONFIG_ARM64_COLOR_ZERO_PAGE */

#endif /* __ASM_COLOR_ZERO_PAGE_H */
