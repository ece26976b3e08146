// SPDX-License-Identifier: GPL-2.0
/*
 * Zero pages, one for each colour of the data cache.
 *
 * Where one way of the L1 data cache is larger than a page, a single zero page
 * can use only the sets of its own colour. How large a way is comes from
 * firmware, by way of cacheinfo: the architecture forbids inferring it from
 * CCSIDR_EL1.
 */
#define pr_fmt(fmt) "zero page: " fmt

#include <linux/cacheinfo.h>
#include <linux/cpumask.h>
#include <linux/init.h>
#include <linux/kstrtox.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/string.h>

/*
 * Constant, so that the kernel can write to none through the mapping of the
 * image, nor through its alias in the linear map.
 */
const u8 empty_zero_page[ZERO_PAGES * PAGE_SIZE] __aligned(sizeof(empty_zero_page));
EXPORT_SYMBOL(empty_zero_page);

unsigned long arm64_zero_pfn __ro_after_init;
EXPORT_SYMBOL(arm64_zero_pfn);

unsigned long arm64_zero_page_mask __ro_after_init;
EXPORT_SYMBOL(arm64_zero_page_mask);

/* What zero_page_colors= asks for; 0: what the caches have */
static unsigned int zero_page_colors __initdata;

static int __init parse_zero_page_colors(const char *arg, unsigned int *colors)
{
	unsigned int n = 1;

	if (!strcmp(arg, "auto"))
		n = 0;
	else if (strcmp(arg, "off") &&
		 (kstrtouint(arg, 10, &n) || !is_power_of_2(n)))
		return -EINVAL;

	*colors = min(n, ZERO_PAGES);
	return 0;
}

static int __init setup_zero_page_colors(char *arg)
{
	return parse_zero_page_colors(arg ?: "", &zero_page_colors);
}
early_param("zero_page_colors", setup_zero_page_colors);

/* Before any page table of a process. The caches are not known yet. */
void __init arch_setup_zero_pages(void)
{
	arm64_zero_pfn = PHYS_PFN(__pa_symbol(empty_zero_page));
}

/* NULL if firmware does not describe it */
static const struct cacheinfo * __init l1d_of(const struct cpu_cacheinfo *caches)
{
	unsigned int i;

	for (i = 0; caches->info_list && i < caches->num_leaves; i++) {
		const struct cacheinfo *cache = &caches->info_list[i];

		if (cache->level == 1 && (cache->type == CACHE_TYPE_DATA ||
					  cache->type == CACHE_TYPE_UNIFIED))
			return cache;
	}

	return NULL;
}

/* In bytes; 0 if the description does not add up */
static unsigned int __init way_size(const struct cacheinfo *cache)
{
	u64 way = (u64)cache->number_of_sets * cache->coherency_line_size;

	if (!is_power_of_2(way) || way > cache->size ||
	    way * cache->ways_of_associativity != cache->size)
		return 0;

	return way;
}

static unsigned int __init colors_of_caches(void)
{
	const struct cacheinfo *largest = NULL;
	unsigned int cpu, decides = 0, colors;

	for_each_online_cpu(cpu) {
		const struct cacheinfo *l1d = l1d_of(get_cpu_cacheinfo(cpu));

		if (!l1d) {
			pr_info("1 color, L1D of cpu%u: not described\n", cpu);
			return 1;
		}
		if (!way_size(l1d) || !largest || way_size(l1d) > way_size(largest)) {
			largest = l1d;
			decides = cpu;
		}
		if (!way_size(l1d))
			break;
	}

	colors = clamp(way_size(largest) / PAGE_SIZE, 1UL, ZERO_PAGES);
	pr_info("%u color%s, L1D of cpu%u: %u bytes, %u sets, %u-byte lines, %u ways\n",
		colors, colors == 1 ? "" : "s", decides, largest->size,
		largest->number_of_sets, largest->coherency_line_size,
		largest->ways_of_associativity);

	return colors;
}

/*
 * The CPUs that start with the system are up, and their caches known. What was
 * handed out before stays a zero page, and stays the right one for its colour.
 */
static int __init zero_page_init(void)
{
	unsigned int colors = zero_page_colors;

	if (colors)
		pr_info("%u color%s, by zero_page_colors=\n", colors,
			colors == 1 ? "" : "s");
	else
		colors = colors_of_caches();

	arm64_zero_page_mask = colors - 1;

	return 0;
}
arch_initcall(zero_page_init);

#ifdef CONFIG_ARM64_COLOR_ZERO_PAGE_KUNIT_TEST
#include "color_zero_page_kunit.c"
#endif
