/* SPDX-License-Identifier: GPL-2.0 */
/* What the parts of the colour zero pages share; not for the rest of the kernel. */
#ifndef __MM_COLOR_ZERO_PAGE_H
#define __MM_COLOR_ZERO_PAGE_H

#include <linux/cacheinfo.h>
#include <linux/types.h>

#include <asm/color_zero_page.h>

enum zero_page_policy {
	ZERO_PAGE_L1D,		/* auto: one page for each colour of the L1D */
	ZERO_PAGE_L2,		/* l2: the same for the L2 */
	ZERO_PAGE_FIXED,	/* a count, also 1 and off */
};

/**
 * struct zero_page_request - what zero_page_colors= asks for
 * @policy:	where the number of colours comes from
 * @colors:	that number, for ZERO_PAGE_FIXED
 */
struct zero_page_request {
	enum zero_page_policy policy;
	unsigned int colors;
};

/* The fields of struct cacheinfo that firmware fills in. */
enum cache_property {
	CACHE_SIZE,
	CACHE_SETS,
	CACHE_LINE_SIZE,
	CACHE_WAYS,
};

/**
 * struct cache_way - one way of a cache, or why it cannot be known
 * @size:	bytes, 0 if the description of the cache cannot be used
 * @property:	where @size is 0: the property that is wrong ...
 * @value:	... what it says ...
 * @fault:	... and what is wrong with that, to follow the value
 */
struct cache_way {
	u32 size;
	enum cache_property property;
	u32 value;
	const char *fault;
};

/**
 * struct zero_page_choice - the number of colours in use, and its origin
 * @colors:	a power of two, at most ZERO_PAGES_MAX
 * @way_size:	bytes of the cache way it was derived from, 0 if from none
 * @from:	"DT", "PPTT", "parameter", or "none" where the caches'
 *		description could not be used
 * @why:	the rest of the line in the log
 */
struct zero_page_choice {
	unsigned int colors;
	u32 way_size;
	const char *from;
	char why[96];
};

/* Bytes for the longest text of a request: ten digits, or a word. */
#define ZERO_PAGE_REQUEST_LEN	11

void zero_page_request_text(const struct zero_page_request *req, char *text);
int zero_page_parse_request(const char *arg, struct zero_page_request *req);
const struct cacheinfo *zero_page_cache(const struct cpu_cacheinfo *caches,
					unsigned int level);
struct cache_way zero_page_cache_way(const struct cacheinfo *cache);
unsigned int zero_page_colors_of_way(u32 way_size);
void zero_page_choose(const struct zero_page_request *req,
		      struct zero_page_choice *choice);
void zero_page_grow(struct arm64_zero_pages *pages, unsigned int colors);

/* Both in force once the initcalls have begun; read-only after init. */
extern struct zero_page_request zero_page_request;
extern struct zero_page_choice zero_page_choice;

#endif /* __MM_COLOR_ZERO_PAGE_H */
