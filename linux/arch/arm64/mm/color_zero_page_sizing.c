// SPDX-License-Identifier: GPL-2.0
/*
 * How many colours a data cache has: the size of one way divided by the size
 * of a page. The size of a way comes from firmware, by way of cacheinfo, and
 * firmware is often wrong about it. A description that does not add up is
 * worth one colour, which is what there is without this feature.
 *
 * CCSIDR_EL1 is not consulted: the architecture forbids inferring the size of
 * a cache from it.
 */
#include <linux/acpi.h>
#include <linux/cpumask.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/kstrtox.h>
#include <linux/log2.h>
#include <linux/sizes.h>
#include <linux/string.h>

#include "color_zero_page.h"

/* CTR_EL0 can express lines up to 2 KiB; no CPU has fewer than 16 bytes. */
#define CACHE_LINE_SIZE_MIN	16
#define CACHE_LINE_SIZE_LIMIT	SZ_2K

/* Far above any L1D or L2 that exists, far below where 32 bits overflow. */
#define CACHE_WAYS_LIMIT	256
#define CACHE_WAY_SIZE_LIMIT	SZ_16M

/* The request as zero_page_colors= spells it; 1 and off are the same. */
void zero_page_request_text(const struct zero_page_request *req, char *text)
{
	if (req->policy == ZERO_PAGE_L1D)
		strscpy(text, "auto", ZERO_PAGE_REQUEST_LEN);
	else if (req->policy == ZERO_PAGE_L2)
		strscpy(text, "l2", ZERO_PAGE_REQUEST_LEN);
	else if (req->colors == 1)
		strscpy(text, "off", ZERO_PAGE_REQUEST_LEN);
	else
		snprintf(text, ZERO_PAGE_REQUEST_LEN, "%u", req->colors);
}

int __init zero_page_parse_request(const char *arg,
				   struct zero_page_request *req)
{
	unsigned int colors;

	if (!arg)
		return -EINVAL;

	if (!strcmp(arg, "auto")) {
		*req = (struct zero_page_request){ .policy = ZERO_PAGE_L1D };
		return 0;
	}

	if (!strcmp(arg, "l2")) {
		*req = (struct zero_page_request){ .policy = ZERO_PAGE_L2 };
		return 0;
	}

	if (!strcmp(arg, "off"))
		colors = 1;
	else if (kstrtouint(arg, 10, &colors))
		return -EINVAL;

	if (!is_power_of_2(colors) || colors > ZERO_PAGES_MAX)
		return -ERANGE;

	*req = (struct zero_page_request){
		.policy = ZERO_PAGE_FIXED,
		.colors = colors,
	};
	return 0;
}

/* The cache that data goes through at @level, NULL if it is not described. */
const struct cacheinfo * __init
zero_page_cache(const struct cpu_cacheinfo *caches, unsigned int level)
{
	unsigned int i;

	if (!caches->info_list)
		return NULL;

	for (i = 0; i < caches->num_leaves; i++) {
		const struct cacheinfo *cache = &caches->info_list[i];

		if (cache->level == level &&
		    (cache->type == CACHE_TYPE_DATA ||
		     cache->type == CACHE_TYPE_UNIFIED))
			return cache;
	}

	return NULL;
}

static struct cache_way __init cache_fault(enum cache_property property,
					   u32 value, const char *fault)
{
	return (struct cache_way){
		.property = property,
		.value = value,
		.fault = fault,
	};
}

struct cache_way __init zero_page_cache_way(const struct cacheinfo *cache)
{
	u32 size = cache->size;
	u32 sets = cache->number_of_sets;
	u32 line = cache->coherency_line_size;
	u32 ways = cache->ways_of_associativity;
	u64 way_size = (u64)sets * line;

	if (!size)
		return cache_fault(CACHE_SIZE, size, "is missing or zero");
	if (!sets)
		return cache_fault(CACHE_SETS, sets, "is missing or zero");
	if (!line)
		return cache_fault(CACHE_LINE_SIZE, line, "is missing or zero");

	if (!is_power_of_2(sets))
		return cache_fault(CACHE_SETS, sets, "is not a power of two");
	if (!is_power_of_2(line) || line < CACHE_LINE_SIZE_MIN ||
	    line > CACHE_LINE_SIZE_LIMIT)
		return cache_fault(CACHE_LINE_SIZE, line, "is no line size");
	if (way_size > CACHE_WAY_SIZE_LIMIT)
		return cache_fault(CACHE_SETS, sets, "is too large");

	/*
	 * A single set is a fully associative cache. cacheinfo leaves the
	 * number of its ways at 0 where it computes that number.
	 */
	if (sets == 1 && !ways)
		ways = size / line;

	/* Otherwise 0 is what cacheinfo computes if there is not even one. */
	if (!ways && size >= way_size)
		return cache_fault(CACHE_WAYS, ways, "is missing or zero");
	if (sets != 1 && ways > CACHE_WAYS_LIMIT)
		return cache_fault(CACHE_SIZE, size,
				   "is too large for its sets and lines");
	if (way_size * ways != size)
		return cache_fault(CACHE_SIZE, size,
				   "is not sets x ways x line size");

	return (struct cache_way){ .size = way_size };
}

/* Not limited to what the image reserves. */
unsigned int __init zero_page_colors_of_way(u32 way_size)
{
	return max_t(unsigned int, way_size / PAGE_SIZE, 1);
}

static const char * __init property_name(const struct cacheinfo *cache,
					 enum cache_property property)
{
	static const char * const pptt[] __initconst = {
		[CACHE_SIZE]		= "size",
		[CACHE_SETS]		= "number of sets",
		[CACHE_LINE_SIZE]	= "line size",
		[CACHE_WAYS]		= "associativity",
	};
	/* A device tree does not name the ways: they follow from the rest. */
	static const char * const dt_data[] __initconst = {
		[CACHE_SIZE]		= "d-cache-size",
		[CACHE_SETS]		= "d-cache-sets",
		[CACHE_LINE_SIZE]	= "d-cache-line-size",
		[CACHE_WAYS]		= "d-cache-size",
	};
	static const char * const dt_unified[] __initconst = {
		[CACHE_SIZE]		= "cache-size",
		[CACHE_SETS]		= "cache-sets",
		[CACHE_LINE_SIZE]	= "cache-line-size",
		[CACHE_WAYS]		= "cache-size",
	};

	if (!acpi_disabled)
		return pptt[property];
	if (cache->type == CACHE_TYPE_DATA)
		return dt_data[property];
	return dt_unified[property];
}

static void __init choose_by_cache(unsigned int level,
				   struct zero_page_choice *choice)
{
	const char *name = level == 1 ? "L1D" : "L2";
	const char *from = acpi_disabled ? "DT" : "PPTT";
	unsigned int cpu, wanted, largest_cpu = 0;
	u32 largest = 0;

	choice->colors = 1;
	choice->way_size = 0;
	choice->from = "none";

	for_each_online_cpu(cpu) {
		const struct cacheinfo *cache;
		struct cache_way way;

		cache = zero_page_cache(get_cpu_cacheinfo(cpu), level);
		if (!cache) {
			scnprintf(choice->why, sizeof(choice->why),
				  "%s is not described in %s (cpu%u)",
				  name, from, cpu);
			return;
		}

		way = zero_page_cache_way(cache);
		if (!way.size) {
			scnprintf(choice->why, sizeof(choice->why),
				  "%s %s %u %s in %s (cpu%u)", name,
				  property_name(cache, way.property),
				  way.value, way.fault, from, cpu);
			return;
		}

		if (way.size > largest) {
			largest = way.size;
			largest_cpu = cpu;
		}
	}

	wanted = zero_page_colors_of_way(largest);
	choice->colors = min_t(unsigned int, wanted, ZERO_PAGES_MAX);
	choice->way_size = largest;
	choice->from = from;

	if (largest < SZ_1K)
		scnprintf(choice->why, sizeof(choice->why),
			  "%s way %u bytes from %s (cpu%u)",
			  name, largest, from, largest_cpu);
	else
		scnprintf(choice->why, sizeof(choice->why),
			  "%s way %u KiB from %s (cpu%u)%s",
			  name, (u32)(largest / SZ_1K), from, largest_cpu,
			  wanted > choice->colors ?
			  ", as many as the image reserves" : "");
}

void __init zero_page_choose(const struct zero_page_request *req,
			     struct zero_page_choice *choice)
{
	char text[ZERO_PAGE_REQUEST_LEN];

	if (req->policy != ZERO_PAGE_FIXED) {
		choose_by_cache(req->policy == ZERO_PAGE_L1D ? 1 : 2, choice);
		return;
	}

	choice->colors = req->colors;
	choice->way_size = 0;
	choice->from = "parameter";
	zero_page_request_text(req, text);
	scnprintf(choice->why, sizeof(choice->why), "by zero_page_colors=%s",
		  text);
}
