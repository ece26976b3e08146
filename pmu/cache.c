// SPDX-License-Identifier: GPL-2.0
#include "cache.h"

#include <stdlib.h>
#include <string.h>

static bool is_power_of_two(uint64_t n)
{
	return n && !(n & (n - 1));
}

static uint32_t log2_up(uint64_t n)
{
	uint32_t shift = 0;

	while ((UINT64_C(1) << shift) < n)
		shift++;
	return shift;
}

uint64_t cache_sets(const struct cache_geometry *g)
{
	return g->size / g->line / g->ways;
}

const char *cache_geometry_error(const struct cache_geometry *g)
{
	if (!is_power_of_two(g->line) || g->line < CACHE_MIN_LINE ||
	    g->line > CACHE_MAX_LINE)
		return "the line must be a power of two from 16 to 4096 bytes";
	if (!g->ways || g->ways > CACHE_MAX_WAYS)
		return "the ways must be from 1 to 64";
	if (g->policy == CACHE_PLRU && !is_power_of_two(g->ways))
		return "a tree (plru) needs a power of two of ways";
	if (!g->size || g->size % ((uint64_t)g->line * g->ways))
		return "the size is not a whole number of sets (ways times line)";
	if (!is_power_of_two(cache_sets(g)))
		return "the number of sets (size / ways / line) is not a power of two";
	return NULL;
}

bool cache_init(struct cache *c, const struct cache_geometry *g, uint64_t seed,
		bool histogram)
{
	uint64_t sets = cache_sets(g);
	size_t words;

	memset(c, 0, sizeof(*c));
	c->geometry = *g;
	c->ways = g->ways;
	c->policy = g->policy;
	c->set_mask = sets - 1;
	c->set_shift = log2_up(g->ways);
	c->line_shift = log2_up(g->line);
	/* An odd multiplier separates neighbouring seeds; the state must not be 0. */
	c->random = seed * UINT64_C(0x9e3779b97f4a7c15);
	if (!c->random)
		c->random = 1;

	words = sets << c->set_shift;
	c->way = malloc(words * sizeof(*c->way));
	c->tree = calloc(sets, sizeof(*c->tree));
	if (histogram)
		c->set_misses = calloc(sets, sizeof(*c->set_misses));
	if (!c->way || !c->tree || (histogram && !c->set_misses)) {
		cache_destroy(c);
		return false;
	}
	memset(c->way, 0xff, words * sizeof(*c->way));
	return true;
}

void cache_destroy(struct cache *c)
{
	free(c->way);
	free(c->tree);
	free(c->set_misses);
	memset(c, 0, sizeof(*c));
}

static int find_way(const struct cache *c, const uint64_t *set, uint64_t line)
{
	uint64_t wanted = line << 1 | CACHE_DIRTY;

	for (uint32_t w = 0; w < c->ways; w++)
		if ((set[w] | CACHE_DIRTY) == wanted)
			return w;
	return -1;
}

/* Makes every node from the root to way @w point to the other half. */
static void tree_point_away(struct cache *c, uint64_t line, uint32_t w)
{
	uint64_t *tree = &c->tree[line & c->set_mask];
	uint32_t node = 1;

	for (uint32_t half = c->ways >> 1; half; half >>= 1) {
		bool upper = w & half;

		if (upper)
			*tree &= ~(UINT64_C(1) << node);
		else
			*tree |= UINT64_C(1) << node;
		node = node << 1 | upper;
	}
}

static uint32_t tree_victim(const struct cache *c, uint64_t line)
{
	uint64_t tree = c->tree[line & c->set_mask];
	uint32_t node = 1;

	while (node < c->ways)
		node = node << 1 | (tree >> node & 1);
	return node - c->ways;
}

/* xorshift64* (S. Vigna, 2016); its upper half is scaled to the ways. */
static uint32_t random_victim(struct cache *c)
{
	uint64_t x = c->random;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	c->random = x;
	x *= UINT64_C(0x2545f4914f6cdd1d);
	return (x >> 32) * c->ways >> 32;
}

static uint32_t victim_way(struct cache *c, const uint64_t *set, uint64_t line)
{
	for (uint32_t w = 0; w < c->ways; w++)
		if (set[w] == CACHE_EMPTY)
			return w;
	return c->policy == CACHE_PLRU ? tree_victim(c, line) : random_victim(c);
}

bool cache_access_placed(struct cache *c, uint64_t line, uint64_t dirty,
			 uint64_t *old)
{
	uint64_t *set = cache_set(c, line);
	int found = find_way(c, set, line);
	uint32_t w = found < 0 ? victim_way(c, set, line) : (uint32_t)found;

	*old = set[w];
	set[w] = found < 0 ? line << 1 | dirty : set[w] | dirty;
	if (c->policy == CACHE_PLRU)
		tree_point_away(c, line, w);
	return found >= 0;
}

uint64_t cache_remove(struct cache *c, uint64_t line)
{
	uint64_t *set = cache_set(c, line);
	int w = find_way(c, set, line);
	uint64_t word;

	if (w < 0)
		return CACHE_EMPTY;
	word = set[w];
	if (c->policy == CACHE_LRU) {
		/* Empty ways are at the end of the order. */
		memmove(set + w, set + w + 1, (c->ways - 1 - w) * sizeof(*set));
		w = c->ways - 1;
	}
	set[w] = CACHE_EMPTY;
	return word;
}

bool cache_clean(struct cache *c, uint64_t line)
{
	uint64_t *set = cache_set(c, line);
	int w = find_way(c, set, line);

	if (w < 0 || !(set[w] & CACHE_DIRTY))
		return false;
	set[w] &= ~CACHE_DIRTY;
	return true;
}
