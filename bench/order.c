// SPDX-License-Identifier: GPL-2.0
#include <stdlib.h>
#include <string.h>

#include "experiment.h"
#include "order.h"

/* Knuth's MMIX generator: the same sequence on each machine */
static uint32_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return *state >> 33;
}

/* A permutation of the @pages first numbers, by Fisher and Yates */
static void shuffle(uint32_t *list, uint32_t pages, uint64_t *state)
{
	for (uint32_t i = pages - 1; i; i--) {
		const uint32_t j = next_random(state) % (i + 1), page = list[i];

		list[i] = list[j];
		list[j] = page;
	}
}

/*
 * Draws @pages of the permutation @list, with a probability that falls as 1 / rank:
 * the number of bits of the rank is uniform.
 */
static void draw(uint32_t *list, uint32_t pages, uint64_t *state)
{
	uint32_t *ranked = malloc(pages * sizeof(*ranked));
	uint32_t bits = 0;

	if (!ranked)
		abort();
	memcpy(ranked, list, pages * sizeof(*ranked));
	while (2u << bits <= pages)
		bits++;
	for (uint32_t i = 0; i < pages; i++) {
		const uint32_t base = 1u << next_random(state) % bits;

		list[i] = ranked[base - 1 + next_random(state) % base];
	}
	free(ranked);
}

static uint32_t upwards(uint32_t *list, uint32_t pages, uint32_t stride)
{
	for (uint32_t i = 0; i < pages / stride; i++)
		list[i] = i * stride;
	return pages / stride;
}

static uint32_t downwards(uint32_t *list, uint32_t pages, uint32_t stride)
{
	for (uint32_t i = 0; i < pages / stride; i++)
		list[i] = pages - 1 - i * stride;
	return pages / stride;
}

static uint32_t at_random(uint32_t *list, uint32_t pages, uint32_t stride)
{
	const uint32_t number = upwards(list, pages, stride);
	uint64_t state = 1;

	shuffle(list, number, &state);
	return number;
}

static uint32_t zipf(uint32_t *list, uint32_t pages, uint32_t stride)
{
	const uint32_t number = upwards(list, pages, stride);
	uint64_t state = 1;

	shuffle(list, number, &state);
	draw(list, number, &state);
	return number;
}

/* One run of @length pages in each slot; the slots come in random order. */
static uint32_t runs(uint32_t *list, uint32_t pages, uint32_t length)
{
	const uint32_t slots = pages / ORDER_SLOT;
	uint32_t *starts = malloc(pages * sizeof(*starts)), number = 0;
	uint64_t state = 1;

	if (!starts)
		abort();
	upwards(starts, pages, ORDER_SLOT);
	if (slots)
		shuffle(starts, slots, &state);
	for (uint32_t i = 0; i < slots; i++) {
		const uint32_t first = starts[i] + next_random(&state) % (ORDER_SLOT - length);

		for (uint32_t j = 0; j < length; j++)
			list[number++] = first + j;
	}
	free(starts);
	return number;
}

/* The first 16th upwards; after each page, @others at random of the rest. */
static uint32_t beside(uint32_t *list, uint32_t pages, uint32_t others)
{
	const uint32_t stream = pages / 16, rest = pages - stream;
	uint32_t *table = malloc(pages * sizeof(*table)), number = 0, used = 0;
	uint64_t state = 1;

	if (!table)
		abort();
	upwards(table, rest, 1);
	shuffle(table, rest, &state);
	for (uint32_t i = 0; i < stream; i++) {
		list[number++] = i;
		for (uint32_t j = 0; j < others; j++)
			list[number++] = stream + table[used++];
	}
	free(table);
	return number;
}

/* From both ends to the middle, in turn. */
static uint32_t from_ends(uint32_t *list, uint32_t pages, uint32_t stride)
{
	uint32_t number = 0;

	for (uint32_t i = 0; i < pages / stride / 2; i++) {
		list[number++] = i * stride;
		list[number++] = pages - 1 - i * stride;
	}
	return number;
}

/* A run that ends where a folio may begin, then each @stride-th page. */
static uint32_t run_then_stride(uint32_t *list, uint32_t pages, uint32_t stride)
{
	uint32_t number = 0;

	for (uint32_t i = 0; i < pages; i += i < 8 ? 1 : stride - i % stride)
		list[number++] = i;
	return number;
}

static uint32_t same(uint32_t *list, uint32_t pages, uint32_t stride)
{
	for (uint32_t i = 0; i < pages / stride; i++)
		list[i] = pages / 2;
	return pages / stride;
}

static const struct order orders[] = {
	{ "up", upwards, 1, NOTHING },
	{ "down", downwards, 1, NOTHING },
	{ "stride-2", upwards, 2, NOTHING },
	{ "stride-16", upwards, 16, NOTHING },
	{ "stride-17", upwards, 17, NOTHING },
	{ "random", at_random, 1, NOTHING },
	{ "zipf", zipf, 1, NOTHING },
	{ "runs-2", runs, 2, NOTHING },
	{ "runs-3", runs, 3, NOTHING },
	{ "runs-5", runs, 5, NOTHING },
	{ "runs-8", runs, 8, NOTHING },
	{ "runs-12", runs, 12, NOTHING },
	{ "beside-1", beside, 1, NOTHING },
	{ "beside-2", beside, 2, NOTHING },
	{ "beside-3", beside, 3, NOTHING },
	{ "up-down", from_ends, 1, NOTHING },
	{ "run-9-then-16", run_then_stride, 16, NOTHING },
	{ "same", same, 16, GIVEN_BACK },
	{ "reader", upwards, 1, NEXT_READ },
};

const char *order_name(size_t place)
{
	return place < ARRAY_SIZE(orders) ? orders[place].name : NULL;
}

const struct order *order_find(const char *name)
{
	const struct order *order = orders;

	while (strcmp(order->name, name))
		order++;
	return order;
}
