/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Zero pages, one for each colour of the data cache.
 *
 * The image reserves ZERO_PAGES_MAX zero pages, of which the first
 * color_mask + 1 are handed out. The reserve is aligned to its size in
 * physical memory, so the low bits of a page's pfn are its colour and
 * ZERO_PAGE() picks the page that has the colour of the address.
 */
#ifndef __ASM_COLOR_ZERO_PAGE_H
#define __ASM_COLOR_ZERO_PAGE_H

#include <linux/jump_label.h>
#include <linux/log2.h>
#include <linux/types.h>

#include <asm/page-def.h>

#ifdef CONFIG_ARM64_COLOR_ZERO_PAGE

#define ZERO_PAGES_ORDER	ilog2(CONFIG_ARM64_COLOR_ZERO_PAGE_MAX)
#define ZERO_PAGES_MAX		rounddown_pow_of_two(CONFIG_ARM64_COLOR_ZERO_PAGE_MAX)
#define ZERO_PAGES_SIZE		(PAGE_SIZE << ZERO_PAGES_ORDER)

#define __HAVE_COLOR_ZERO_PAGE

/**
 * struct arm64_zero_pages - which zero pages are handed out
 * @pfn:	the first page, the one of colour 0
 * @block:	@pfn in units of the whole reserve
 * @color_mask:	the number of colours in use, less one
 */
struct arm64_zero_pages {
	unsigned long pfn;
	unsigned long block;
	unsigned long color_mask;
};

extern struct arm64_zero_pages arm64_zero_pages;
extern const u8 empty_zero_page[ZERO_PAGES_SIZE];

/* 7.3 declares it in <linux/pgtable.h>, 6.12 knows only of s390's own. */
void arch_setup_zero_pages(void);

/* On once there is more than one colour, never off again. */
DECLARE_STATIC_KEY_FALSE(arm64_zero_pages_colored);

static inline unsigned long arm64_zero_pfn(unsigned long addr)
{
	unsigned long pfn = arm64_zero_pages.pfn;

	/* Most callers want any zero page and say ZERO_PAGE(0). */
	if (__builtin_constant_p(addr) && !addr)
		return pfn;
	if (static_branch_unlikely(&arm64_zero_pages_colored))
		pfn += (addr >> PAGE_SHIFT) & arm64_zero_pages.color_mask;
	return pfn;
}

#define ZERO_PAGE(vaddr)	pfn_to_page(arm64_zero_pfn((unsigned long)(vaddr)))

/*
 * The whole reserve counts, not only the colours in use: what was mapped
 * before the mask grew stays a zero page, and the test does not depend on a
 * variable that changes. Comparing the block costs what comparing a single
 * pfn costs, on paths that ask for every page of a fork and of an exit.
 */
#define is_zero_pfn is_zero_pfn
static inline int is_zero_pfn(unsigned long pfn)
{
	return pfn >> ZERO_PAGES_ORDER == arm64_zero_pages.block;
}

#else /* !CONFIG_ARM64_COLOR_ZERO_PAGE */

#define ZERO_PAGES_SIZE		PAGE_SIZE

#endif /* CONFIG_ARM64_COLOR_ZERO_PAGE */

#endif /* __ASM_COLOR_ZERO_PAGE_H */
