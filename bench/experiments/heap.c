// SPDX-License-Identifier: GPL-2.0
/*
 * brk(2): the heap grows and shrinks.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "operation.h"
#include "touch.h"

static char *align_up(char *address, size_t align)
{
	return (char *)(((uintptr_t)address + align - 1) & -align);
}

/*
 * The heap begins at a random address. Aligned to twice its size, which is also
 * what it grows to, the memory has page tables of the same shape in every run.
 * What no one may access before it keeps it a VMA of its own.
 */
static int map_in_heap(struct memory *memory, size_t size, size_t align)
{
	char *before = sbrk(0);
	char *gap = align_up(before, page_size());
	int error;

	while (align / 2 >= 2 * size)
		align /= 2;
	memory->start = align_up(gap + page_size(), align);
	memory->size = size;
	memory->reserved = before;
	if (!brk(memory->start + size) &&
	    !mprotect(gap, memory->start - gap, PROT_NONE))
		return 0;
	error = -errno;
	brk(before);
	memory->start = NULL;
	return error;
}

/*
 * Nothing else is in the heap behind the memory: what malloc() gives meanwhile
 * are some kilobytes, which it has left over from before.
 */
static void give_back(struct area *area)
{
	if (!area->memory.start)
		return;
	brk(area->memory.reserved);
	area->memory.start = NULL;
}

static char *end_of(const struct area *area)
{
	return area->memory.start + area->memory.size;
}

static int64_t move_up(struct area *area)
{
	return brk(end_of(area) + area->memory.size) ? -errno : 1;
}

static int64_t move_up_in_pieces(struct area *area)
{
	const size_t stride = area_stride();

	for (size_t at = stride; at <= area->memory.size; at += stride)
		if (brk(end_of(area) + at))
			return -errno;
	return area->memory.size / stride;
}

static int64_t move_up_and_store(struct area *area)
{
	const struct touch *touch = touch_find("store");
	const size_t stride = area_stride();
	const size_t page = page_size();

	for (size_t at = stride; at <= area->memory.size; at += stride) {
		char *end = end_of(area) + at;

		if (brk(end))
			return -errno;
		touch->pages(end - stride, end, page);
	}
	return area->memory.size / stride;
}

static int64_t move_down(struct area *area)
{
	return brk(area->memory.start) ? -errno : 1;
}

static int64_t move_down_in_pieces(struct area *area)
{
	const size_t stride = area_stride();

	for (size_t at = stride; at <= area->memory.size; at += stride)
		if (brk(end_of(area) - at))
			return -errno;
	return area->memory.size / stride;
}

static const struct operation operations[] = {
	{ "up", NULL, move_up },
	{ "up-pieces", NULL, move_up_in_pieces },
	{ "up-stores", NULL, move_up_and_store },
	{ "down", NULL, move_down },
	{ "down-pieces", NULL, move_down_in_pieces },
	{ }
};

static const char *operation_name(size_t place)
{
	return operations[place].name;
}

static enum status measure(struct run *run)
{
	return operation_measure_in(run, operations, map_in_heap, give_back);
}

static const struct param params[] = {
	OPERATION_PARAM("down"),
	{ }
};

static const struct metric metrics[] = {
	OPERATIONS_METRIC,
	{ }
};

static const struct experiment heap = {
	.name = "heap",
	.summary = "brk up and down: the heap grows and shrinks",
	.detail =
"The memory is at the end of the heap. up: one call of brk makes the heap larger by\n"
"--size, behind the memory. up-pieces: a call for each 16 base pages. up-stores: the\n"
"same, with stores to the pages after each call, as malloc does it; they are not asked\n"
"to be huge. down: one call gives the memory back. down-pieces: a call for each 16 base\n"
"pages, from the end.",
	.example = "--operation down --memory 64k",
	.params = params,
	.metrics = metrics,
	.shared_params = area_param,
	.shared_metrics = area_metric,
	.measure = measure,
};

EXPERIMENT(heap);
