// SPDX-License-Identifier: GPL-2.0
#include "translation.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void translations_drop(struct translations *t)
{
	memset(t->entry, 0xff, sizeof(t->entry));
}

enum lookup translation_lookup(qemu_plugin_meminfo_t info, uint64_t va,
			       uint64_t *pa)
{
	const struct qemu_plugin_hwaddr *where = qemu_plugin_get_hwaddr(info, va);

	if (!where)
		return LOOKUP_FAILED;
	if (qemu_plugin_hwaddr_is_io(where))
		return LOOKUP_DEVICE;
	*pa = qemu_plugin_hwaddr_phys_addr(where);
	return LOOKUP_RAM;
}

/* The mapping of this process that contains @host. */
static bool find_mapping(uint64_t host, uint64_t *start, uint64_t *end)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	bool found = false;

	if (!maps)
		return false;
	while (!found && fgets(line, sizeof(line), maps))
		found = sscanf(line, "%" SCNx64 "-%" SCNx64, start, end) == 2 &&
			*start <= host && host < *end;
	fclose(maps);
	return found;
}

static void learn(struct code_pages *c, uint64_t host, uint64_t pa)
{
	struct code_block *b = &c->block[c->nr_blocks];
	uint64_t known;

	if (c->nr_blocks == MAX_CODE_BLOCKS || code_pages_place(c, host, &known))
		return;
	if (!find_mapping(host, &b->start, &b->end))
		return;
	b->pa_minus_host = pa - host;
	c->nr_blocks++;
}

static void drop_old(struct code_pages *c, uint64_t generation)
{
	if (c->generation == generation)
		return;
	memset(c->executed, 0xff, sizeof(c->executed));
	c->generation = generation;
}

void code_pages_executed(struct code_pages *c, uint64_t generation, uint64_t va,
			 uint64_t host)
{
	uint64_t va_page = va >> FT_PAGE_SHIFT;

	drop_old(c, generation);
	c->executed[va_page % NR_CODE_PAGES].va_page = va_page;
	c->executed[va_page % NR_CODE_PAGES].host = host & ~(FT_PAGE_SIZE - 1);
}

void code_pages_read(struct code_pages *c, uint64_t generation, uint64_t va,
		     uint64_t pa)
{
	uint64_t va_page = va >> FT_PAGE_SHIFT;

	drop_old(c, generation);
	if (c->executed[va_page % NR_CODE_PAGES].va_page == va_page)
		learn(c, c->executed[va_page % NR_CODE_PAGES].host,
		      pa & ~(FT_PAGE_SIZE - 1));
}

bool code_pages_place(const struct code_pages *c, uint64_t host, uint64_t *pa)
{
	for (unsigned int i = 0; i < c->nr_blocks; i++) {
		const struct code_block *b = &c->block[i];

		if (host >= b->start && host < b->end) {
			*pa = host + b->pa_minus_host;
			return true;
		}
	}
	return false;
}

#if FT_HAS_REGISTERS && !FT_HAS_TRANSLATE
static bool is_kernel_half(uint64_t va)
{
	return va >> 55 & 1;
}

void linear_note(struct linear_map *map, uint64_t va, uint64_t pa)
{
	uint64_t number = va >> LINEAR_SHIFT;
	typeof(map->part[0]) *part = &map->part[number % NR_LINEAR];

	if (!is_kernel_half(va))
		return;
	if (part->number != number) {
		part->number = number;
		part->pa_minus_va = pa - va;
		part->agreed = 0;
		part->broken = false;
	} else if (part->pa_minus_va != pa - va) {
		part->broken = true;
	} else {
		part->agreed++;
	}
}

bool linear_place(const struct linear_map *map, uint64_t va, uint64_t *pa)
{
	uint64_t number = va >> LINEAR_SHIFT;
	const typeof(map->part[0]) *part = &map->part[number % NR_LINEAR];

	*pa = va + part->pa_minus_va;
	return is_kernel_half(va) && part->number == number && !part->broken &&
		part->agreed >= LINEAR_PROOF;
}
#else
void linear_note(struct linear_map *map, uint64_t va, uint64_t pa)
{
	(void)map;
	(void)va;
	(void)pa;
}
#endif
