// SPDX-License-Identifier: GPL-2.0
#include "zva.h"

#if FT_HAS_REGISTERS
#include <stdio.h>
#include <string.h>

#include "counts.h"
#include "hierarchy.h"
#include "translation.h"
#include "userdata.h"

void zva_find_registers(struct zva *z, unsigned int cpu)
{
	GArray *registers = qemu_plugin_get_registers();
	/* Newer QEMUs have added members to the end of a descriptor. */
	const unsigned int size = g_array_get_element_size(registers);

	z->cpu[cpu].value = g_byte_array_new();
	for (unsigned int i = 0; i < registers->len; i++) {
		const qemu_plugin_reg_descriptor *r = registers->data + i * size;
		unsigned int n;
		char end;

		if (sscanf(r->name, "x%u%c", &n, &end) == 1 && n < 31) {
			z->cpu[cpu].x[n] = r->handle;
			z->cpu[cpu].has |= 1U << n;
		}
	}
	g_array_free(registers, 1);
}

static bool read_register(const struct zva *z, unsigned int cpu, unsigned int n,
			  uint64_t *value)
{
	GByteArray *bytes = z->cpu[cpu].value;

	if (!(z->cpu[cpu].has & 1U << n))
		return false;
	g_byte_array_set_size(bytes, 0);
	qemu_plugin_read_register(z->cpu[cpu].x[n], bytes);
	if (bytes->len != sizeof(*value))
		return false;
	memcpy(value, bytes->data, sizeof(*value));
	return true;
}

static bool place(struct pmu *pmu, unsigned int cpu, uint64_t va, uint64_t *pa)
{
	if (translations_find(&pmu->cpu[cpu].translations, generation(pmu), va, pa))
		return true;
#if FT_HAS_TRANSLATE
	return qemu_plugin_translate_vaddr(va, pa);
#else
	return linear_place(&pmu->linear, va, pa);
#endif
}

static void zva_ran(struct zva *z, unsigned int cpu, unsigned int rt,
		    enum privilege priv)
{
	struct pmu *pmu = z->pmu;
	const struct cache *l1d = pmu->caches.cpu[cpu].at[LEVEL_L1D];
	uint64_t block = pmu->options.zva_block;
	uint64_t va, pa;
	/* Register 31 is XZR here: none has it. */
	bool known = read_register(z, cpu, rt, &va);
	bool placed = known && place(pmu, cpu, va & ~(block - 1), &pa);

	if (!l1d)
		return;
	if (!placed) {
		pmu->cpu[cpu].counts.event[priv][EV_ZVA_UNPLACED]++;
		return;
	}
	for (uint64_t end = pa + block; pa < end; pa += l1d->geometry.line)
		hierarchy_data(&pmu->caches, cpu, pa, true, priv);
}

/* @udata: the number of Xt, and in bit 0 the privilege. */
static void on_zva(unsigned int cpu, void *udata)
{
	struct zva *z = userdata_context(udata);
	unsigned int packed = userdata_number(udata);

	pmu_lock(z->pmu);
	zva_ran(z, cpu, packed >> 1, packed & 1);
	pmu_unlock(z->pmu);
}

void zva_watch(struct zva *z, struct qemu_plugin_insn *after, unsigned int rt,
	       enum privilege priv)
{
	if (z->pmu->has_l1d)
		qemu_plugin_register_vcpu_insn_exec_cb(after, on_zva,
						       QEMU_PLUGIN_CB_R_REGS,
						       userdata(z, rt << 1 | priv));
}
#endif
