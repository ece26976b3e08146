// SPDX-License-Identifier: GPL-2.0
/*
 * Zero pages, one for each colour of the data cache.
 *
 * Reads of untouched anonymous memory all come from the zero page. Where one
 * way of a data cache is larger than a page, a single zero page can use only
 * the sets of its own colour, and those sets are the ones that suffer when
 * something else competes for them. With a page for each colour the reads
 * spread over the cache as reads of real memory would.
 */
#define pr_fmt(fmt) "zero page: " fmt

#include <linux/cache.h>
#include <linux/export.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/printk.h>
#include <linux/sizes.h>

#include <asm/boot.h>

#include "color_zero_page.h"

/* No boot loader is asked for more alignment than this. */
static_assert(ZERO_PAGES_SIZE <= MIN_KIMG_ALIGN);

/*
 * In the image, after the rest of the read-only data: both the image's own
 * mapping and its alias in the linear map are read-only by the time the first
 * process runs, so a write to any of the pages faults.
 */
const u8 empty_zero_page[ZERO_PAGES_SIZE]
	__aligned(ZERO_PAGES_SIZE) __section(".zero_pages");
EXPORT_SYMBOL(empty_zero_page);

struct arm64_zero_pages arm64_zero_pages __ro_after_init;
EXPORT_SYMBOL(arm64_zero_pages);

DEFINE_STATIC_KEY_FALSE_RO(arm64_zero_pages_colored);
EXPORT_SYMBOL(arm64_zero_pages_colored);

struct zero_page_request zero_page_request __ro_after_init = {
	.policy = ZERO_PAGE_L1D,
};

struct zero_page_choice zero_page_choice __ro_after_init;

static int __init early_zero_page_colors(char *arg)
{
	struct zero_page_request *req = &zero_page_request;

	if (zero_page_parse_request(arg, req)) {
		pr_warn("zero_page_colors=%s is not auto, l2, off or a power of two up to %lu: using auto\n",
			arg ?: "", ZERO_PAGES_MAX);
		*req = (struct zero_page_request){ .policy = ZERO_PAGE_L1D };
	}

	return 0;
}
early_param("zero_page_colors", early_zero_page_colors);

/*
 * Runs before any page table of a process exists, and long before the caches
 * are known: there is one colour to begin with.
 */
void __init arch_setup_zero_pages(void)
{
	arm64_zero_pages.pfn = PHYS_PFN(__pa_symbol(empty_zero_page));
	arm64_zero_pages.block = arm64_zero_pages.pfn >> ZERO_PAGES_ORDER;
}

/*
 * Only ever more colours: a page handed out before stays the right one for
 * some address, and none leaves the range that is_zero_pfn() covers.
 */
void __init zero_page_grow(struct arm64_zero_pages *pages, unsigned int colors)
{
	pages->color_mask = max_t(unsigned long, pages->color_mask, colors - 1);
}

/*
 * All CPUs that start with the system are up, cacheinfo knows their caches,
 * and no process has run yet. CPUs that come later do not change the number:
 * it is read-only by then.
 */
static int __init zero_page_init(void)
{
	struct zero_page_choice *choice = &zero_page_choice;

	zero_page_choose(&zero_page_request, choice);

	/*
	 * A boot loader that ignores the alignment the image asks for has
	 * moved the pages off their colours. Only the first is used then: it
	 * is in the block of its own pfn, and so is nothing that could ever
	 * be mapped to a process, for what precedes it is kernel image.
	 */
	if (choice->colors > 1 &&
	    !IS_ALIGNED(arm64_zero_pages.pfn, ZERO_PAGES_MAX)) {
		choice->colors = 1;
		snprintf(choice->why, sizeof(choice->why),
			 "kernel image is not aligned to %u KiB",
			 (u32)(ZERO_PAGES_SIZE / SZ_1K));
	}

	zero_page_grow(&arm64_zero_pages, choice->colors);
	if (arm64_zero_pages.color_mask)
		static_branch_enable(&arm64_zero_pages_colored);

	pr_info("%u color%s, %s\n", choice->colors,
		choice->colors == 1 ? "" : "s", choice->why);

	return 0;
}
pure_initcall(zero_page_init);
