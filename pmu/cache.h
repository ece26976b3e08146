/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One set-associative, write-back cache: which lines it has, which it evicts next.
 *
 * The cache knows lines, but not the levels above or below it; these are in
 * hierarchy.h. Nothing here depends on QEMU.
 */
#ifndef FT_CACHE_H
#define FT_CACHE_H

#include <stdbool.h>
#include <stdint.h>

enum cache_policy {
	CACHE_LRU,		/* exact least recently used */
	CACHE_PLRU,		/* binary tree, one bit per node, points to the victim */
	CACHE_RANDOM,		/* seeded: two runs choose the same */
};

struct cache_geometry {
	uint64_t size;		/* bytes */
	uint32_t ways;
	uint32_t line;		/* bytes */
	enum cache_policy policy;
};

/* The tree bits of all ways are in one 64-bit word. */
#define CACHE_MAX_WAYS	64
/* No access is longer than 16 bytes, so it is in at most two lines. */
#define CACHE_MIN_LINE	16
#define CACHE_MAX_LINE	4096

/*
 * A way contains the number of its line shifted left by one and, in bit 0, whether
 * it is dirty. A line number is a physical address without the offset in the line,
 * so no line equals CACHE_EMPTY.
 */
#define CACHE_DIRTY	UINT64_C(1)
#define CACHE_EMPTY	UINT64_MAX

struct cache {
	/*
	 * Sets of 1 << set_shift words each. Under LRU the words of a set are
	 * ordered from the most to the least recently used, with the empty ones
	 * last; otherwise a line stays in the way that it was put in.
	 */
	uint64_t *way;
	uint64_t set_mask;
	uint32_t set_shift;
	uint32_t line_shift;
	uint32_t ways;
	enum cache_policy policy;
	uint64_t *tree;		/* PLRU: node n of a set is bit n, the root is 1 */
	uint64_t random;	/* state of the generator, never 0 */
	uint64_t *set_misses;	/* per set, or NULL if not requested */
	struct cache_geometry geometry;
};

/*
 * Returns why @g is invalid, in words that follow the name of the cache, or NULL
 * if it is valid.
 */
const char *cache_geometry_error(const struct cache_geometry *g);

uint64_t cache_sets(const struct cache_geometry *g);

/*
 * @g must be valid. @seed is only for random replacement. Returns false if out of
 * memory.
 */
bool cache_init(struct cache *c, const struct cache_geometry *g, uint64_t seed,
		bool histogram);
void cache_destroy(struct cache *c);

/* Number of the line that holds physical address @pa. */
static inline uint64_t cache_line(const struct cache *c, uint64_t pa)
{
	return pa >> c->line_shift;
}

static inline uint64_t *cache_set(const struct cache *c, uint64_t line)
{
	return c->way + ((line & c->set_mask) << c->set_shift);
}

/* cache_access() for policies other than LRU. */
bool cache_access_placed(struct cache *c, uint64_t line, uint64_t dirty,
			 uint64_t *old);

/*
 * Accesses @line, allocates it on a miss, and marks it dirty if @dirty is
 * CACHE_DIRTY. An empty way is used before a line is evicted. Returns whether it
 * was a hit. @old is the line's former word on a hit, and on a miss the word of
 * the evicted line, or CACHE_EMPTY.
 */
static inline bool cache_access(struct cache *c, uint64_t line, uint64_t dirty,
				uint64_t *old)
{
	uint64_t wanted = line << 1 | CACHE_DIRTY;
	uint64_t *set = cache_set(c, line);
	uint64_t word = *set;

	if (c->policy != CACHE_LRU)
		return cache_access_placed(c, line, dirty, old);
	if ((word | CACHE_DIRTY) == wanted) {
		*old = word;
		*set = word | dirty;
		return true;
	}
	/* Each line moves one place back, up to the place of @line. */
	for (uint32_t w = 1; w < c->ways; w++) {
		uint64_t previous = word;

		word = set[w];
		set[w] = previous;
		if ((word | CACHE_DIRTY) == wanted) {
			*old = word;
			*set = word | dirty;
			return true;
		}
	}
	*old = word;
	*set = line << 1 | dirty;
	return false;
}

/* Removes @line. Returns its word, or CACHE_EMPTY if it was absent. */
uint64_t cache_remove(struct cache *c, uint64_t line);

/* Marks @line clean. Returns whether it was dirty. */
bool cache_clean(struct cache *c, uint64_t line);

static inline void cache_note_miss(struct cache *c, uint64_t line)
{
	if (c->set_misses)
		c->set_misses[line & c->set_mask]++;
}

#endif
