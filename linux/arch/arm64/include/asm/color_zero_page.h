/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __ASM_COLOR_ZERO_PAGE_H
#define __ASM_COLOR_ZERO_PAGE_H

#ifdef CONFIG_ARM64_COLOR_ZERO_PAGE

#include <linux/types.h>

#include <asm/memory.h>
#include <asm/page-def.h>

#define __HAVE_COLOR_ZERO_PAGE

/* As many as the segments of the image are aligned to */
#define ZERO_PAGES		(SEGMENT_ALIGN / PAGE_SIZE)

extern const u8 empty_zero_page[ZERO_PAGES * PAGE_SIZE];

/* The pfn of the first; and the number in use less one */
extern unsigned long arm64_zero_pfn;
extern unsigned long arm64_zero_page_mask;

void arch_setup_zero_pages(void);

/* All that could be mapped, not what is in use */
#define is_zero_pfn is_zero_pfn
static inline int is_zero_pfn(unsigned long pfn)
{
	return pfn - arm64_zero_pfn < ZERO_PAGES;
}

#define ZERO_PAGE(vaddr)						\
	pfn_to_page(arm64_zero_pfn +					\
		    ((unsigned long)(vaddr) >> PAGE_SHIFT & arm64_zero_page_mask))

#endif /* CONFIG_ARM64_COLOR_ZERO_PAGE */

#endif /* __ASM_COLOR_ZERO_PAGE_H */
