// SPDX-License-Identifier: GPL-2.0
/*
 * Loops of ordinary programs that read a word and then write it. Which
 * instructions do both is the compiler's choice, so there is no assembly here.
 * The Makefile compiles this file for each COMPILER and MARCH.
 */
#include <stdatomic.h>

#include "kinds.h"

/* So few random updates for each 4 KiB leave some pages untouched. */
#define UPDATES(size)	((size) / 512)

static uint64_t bss[BSS_SIZE / sizeof(uint64_t)] __attribute__((__aligned__(65536)));

/* Marsaglia, "Xorshift RNGs", 2003: the same numbers in every build. */
static uint64_t random_number(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

#define SEED	88172645463325252ull

static uint64_t increment(void *memory, size_t size)
{
	uint32_t *h = memory;
	size_t n = size / sizeof(*h);

	for (size_t i = 0; i < n; i++)
		h[i]++;
	return n;
}

static uint64_t histogram(void *memory, size_t size)
{
	uint64_t state = SEED;
	uint32_t *h = memory;
	size_t n = size / sizeof(*h);

	for (size_t i = 0; i < UPDATES(size); i++)
		h[random_number(&state) % n]++;
	return state;
}

static uint64_t bitmap(void *memory, size_t size)
{
	uint64_t state = SEED;
	uint64_t *b = memory;

	for (size_t i = 0; i < UPDATES(size); i++) {
		size_t bit = random_number(&state) % (size * 8);

		b[bit / 64] |= 1ull << bit % 64;
	}
	return state;
}

/* Counts words in a table with open addressing. Key 0 is an empty slot. */
static uint64_t hash_table(void *memory, size_t size)
{
	struct slot {
		uint64_t key, count;
	} *table = memory;
	size_t n = size / sizeof(*table);
	uint64_t state = SEED, probes = 0;

	for (size_t i = 0; i < UPDATES(size); i++) {
		uint64_t key = random_number(&state) % n + 1;
		size_t at = (key * 0x9e3779b97f4a7c15ull >> 32) % n;

		while (table[at].key && table[at].key != key) {
			at = at + 1 < n ? at + 1 : 0;
			probes++;
		}
		table[at].key = key;
		table[at].count++;
	}
	return probes;
}

/* Looks values up; few are missed and then stored. */
static uint64_t sparse(void *memory, size_t size)
{
	uint64_t *values = memory;
	size_t n = size / sizeof(*values);
	uint64_t state = SEED, sum = 0;

	for (size_t i = 0; i < UPDATES(size); i++) {
		uint64_t number = random_number(&state);
		uint64_t value = values[number % n];

		if (!value && number >> 56 == 1)
			values[number % n] = number;
		sum += value;
	}
	return sum;
}

/* The root of the set of @x, which halves its path. A root's parent is 0. */
static uint32_t find(uint32_t *parent, uint32_t x)
{
	while (parent[x]) {
		uint32_t above = parent[parent[x]];

		if (above)
			parent[x] = above;
		x = parent[x];
	}
	return x;
}

static uint64_t union_find(void *memory, size_t size)
{
	uint32_t *parent = memory;
	size_t n = size / sizeof(*parent);
	uint64_t state = SEED, joined = 0;

	for (size_t i = 0; i < UPDATES(size) / 2; i++) {
		uint32_t a = find(parent, random_number(&state) % (n - 1) + 1);
		uint32_t b = find(parent, random_number(&state) % (n - 1) + 1);

		if (a != b) {
			parent[a] = b;
			joined++;
		}
	}
	return joined;
}

static uint64_t counters(void *memory, size_t size)
{
	uint64_t state = SEED;

	(void)memory;
	for (size_t i = 0; i < UPDATES(size); i++)
		bss[random_number(&state) % (size / sizeof(*bss))]++;
	return state;
}

static uint64_t atomic_counters(void *memory, size_t size)
{
	atomic_ulong *h = memory;
	size_t n = size / sizeof(*h);
	uint64_t state = SEED;

	for (size_t i = 0; i < UPDATES(size); i++)
		atomic_fetch_add_explicit(&h[random_number(&state) % n], 1,
					  memory_order_relaxed);
	return state;
}

/* A set without locks: a key goes into the first slot that is free. */
static uint64_t atomic_claim(void *memory, size_t size)
{
	atomic_ulong *slots = memory;
	size_t n = size / sizeof(*slots);
	uint64_t state = SEED, taken = 0;

	for (size_t i = 0; i < UPDATES(size); i++) {
		uint64_t key = random_number(&state), holder = 0;
		size_t at = key % n;

		while (!atomic_compare_exchange_strong(&slots[at], &holder, key)) {
			at = at + 1 < n ? at + 1 : 0;
			holder = 0;
			taken++;
		}
	}
	return taken;
}

static const struct kind kinds[] = {
	{ .name = "increment", .update = increment },
	{ .name = "histogram", .update = histogram },
	{ .name = "bitmap", .update = bitmap },
	{ .name = "hash-table", .update = hash_table },
	{ .name = "sparse", .update = sparse },
	{ .name = "union-find", .update = union_find },
	{ .name = "bss-counters", .update = counters, .bss = bss },
	{ .name = "atomic-counters", .update = atomic_counters },
	{ .name = "atomic-claim", .update = atomic_claim },
	{ }
};

static const struct build build = { COMPILER, MARCH, kinds };

BUILD(build);
