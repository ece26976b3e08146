// SPDX-License-Identifier: GPL-2.0
#include "zva.h"

#include <stdio.h>
#include <string.h>

#include "pmu.h"

#if FT_HAS_REGISTERS && !FT_HAS_TRANSLATE
static bool is_kernel_half(uint64_t va)
{
	return va >> 55 & 1;
}

void zva_note_translation(struct linear_map *map, uint64_t va, uint64_t pa)
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

static bool linear_place(const struct linear_map *map, uint64_t va, uint64_t *pa)
{
	uint64_t number = va >> LINEAR_SHIFT;
	const typeof(map->part[0]) *part = &map->part[number % NR_LINEAR];

	*pa = va + part->pa_minus_va;
	return is_kernel_half(va) && part->number == number && !part->broken &&
		part->agreed >= LINEAR_PROOF;
}
#else
void zva_note_translation(struct linear_map *map, uint64_t va, uint64_t pa)
{
	(void)map;
	(void)va;
	(void)pa;
}
#endif

#if FT_HAS_REGISTERS
void zva_find_registers(struct pmu *pmu, unsigned int cpu)
{
	struct pmu_cpu *c = &pmu->cpu[cpu];
	GArray *registers = qemu_plugin_get_registers();
	const qemu_plugin_reg_descriptor *r = registers->data;

	c->value = g_byte_array_new();
	for (unsigned int i = 0; i < registers->len; i++) {
		unsigned int n;
		char end;

		if (sscanf(r[i].name, "x%u%c", &n, &end) == 1 && n < 31)
			c->x[n] = r[i].handle;
	}
	g_array_free(registers, 1);
}

static bool read_register(struct pmu_cpu *c, struct qemu_plugin_register *r,
			  uint64_t *value)
{
	if (!r)
		return false;
	g_byte_array_set_size(c->value, 0);
	qemu_plugin_read_register(r, c->value);
	if (c->value->len != sizeof(*value))
		return false;
	memcpy(value, c->value->data, sizeof(*value));
	return true;
}

static bool place(const struct pmu *pmu, struct pmu_cpu *c, uint64_t va, uint64_t *pa)
{
	if (translations_find(&c->translations, pmu->translation_generation, va, pa))
		return true;
#if FT_HAS_TRANSLATE
	return qemu_plugin_translate_vaddr(va, pa);
#else
	return linear_place(&pmu->linear, va, pa);
#endif
}

void zva_ran(struct pmu *pmu, unsigned int cpu, unsigned int rt,
	     enum privilege priv)
{
	struct pmu_cpu *c = &pmu->cpu[cpu];
	const struct cache *l1d = pmu->caches.cpu[cpu].at[LEVEL_L1D];
	uint64_t block = pmu->options.zva_block;
	uint64_t va, pa;

	/* Register 31 is XZR here. */
	if (rt == 31 || !read_register(c, c->x[rt], &va) ||
	    !place(pmu, c, va & ~(block - 1), &pa)) {
		c->counts.event[priv][EV_ZVA_UNPLACED]++;
		return;
	}
	for (uint64_t end = pa + block; pa < end; pa += l1d->geometry.line)
		hierarchy_data(&pmu->caches, cpu, pa, true, priv);
}
#endif
