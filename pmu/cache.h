/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One set-associative, write-back cache: who is in it, who leaves next.
 *
 * The cache knows lines and nothing of what lies above or below it; see
 * hierarchy.h for that. Nothing here knows of QEMU.
 */
#ifndef FT_CACHE_H
#define FT_CACHE_H

#include <stdbool.h>
#include <stdint.h>

enum cache_policy {
	CACHE_LRU,		/* exact least recently used */
	CACHE_PLRU,		/* binary tree, one bit per node, points to the victim */
	CACHE_RANDOM,		/* seeded, so that two runs choose alike */
};

struct cache_geometry {
	uint64_t size;		/* bytes */
	uint32_t ways;
	uint32_t line;		/* bytes */
	enum cache_policy policy;
};

/* Ways are counted in one 64-bit word of tree bits. */
#define CACHE_MAX_WAYS	64
/* No access is longer than 16 bytes, so none touches more than two lines. */
#define CACHE_MIN_LINE	16
#define CACHE_MAX_LINE	4096

/*
 * A way holds the number of its line shifted left by one and, in bit 0, whether
 * it is dirty. Line numbers are physical addresses without their offset, so no
 * line looks like CACHE_EMPTY.
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
	uint64_t *set_misses;	/* per set, or NULL where nobody asked */
	struct cache_geometry geometry;
};

/*
 * Says why @g cannot be built, in words that follow the name of the cache, or
 * returns NULL when it can.
 */
const char *cache_geometry_error(const struct cache_geometry *g);

uint64_t cache_sets(const struct cache_geometry *g);

/*
 * @g must be without error. @seed matters to random replacement alone.
 * Returns false when memory is short.
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

/* cache_access() where the policy is not LRU. */
bool cache_access_placed(struct cache *c, uint64_t line, uint64_t dirty,
			 uint64_t *old);

/*
 * Uses @line, puts it in if it is not there, and marks it dirty if @dirty is
 * CACHE_DIRTY. An empty way is taken before a line is evicted. Returns whether
 * the line was there; @old is then its former word, else that of the line which
 * left for it, or CACHE_EMPTY.
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
	/* Each line moves one place back, up to where the wanted one was. */
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

/* Removes @line. Returns its word, or CACHE_EMPTY if it was not there. */
uint64_t cache_remove(struct cache *c, uint64_t line);

/* Clears the dirty mark of @line. Returns whether there was one to clear. */
bool cache_clean(struct cache *c, uint64_t line);

static inline void cache_note_miss(struct cache *c, uint64_t line)
{
	if (c->set_misses)
		c->set_misses[line & c->set_mask]++;
}

#endif
