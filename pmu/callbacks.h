/* SPDX-License-Identifier: GPL-2.0 */
/* What QEMU is given to call, by the file that has it. */
#ifndef FT_CALLBACKS_H
#define FT_CALLBACKS_H

#include <stdint.h>

#include "hierarchy.h"
#include "plugin_api.h"

/* An instruction's opcode and privilege as the one pointer of its callback. */
static inline void *pack_insn(uint32_t insn, enum privilege priv)
{
	return (void *)((uintptr_t)insn << 1 | priv);
}

/* access.c: for memory accesses, with what pack_access() made of the instruction */
void *pack_access(unsigned int limit, enum privilege priv);
void on_load(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t va, void *packed);
void on_store(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t va, void *packed);
void on_load_or_store(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t va,
		      void *packed);
void on_fetch(unsigned int cpu, void *at);

/* events.c: with what pack_insn() made of the instruction */
void on_tlbi(unsigned int cpu, void *packed);
void on_dsb(unsigned int cpu, void *packed);
void on_isb(unsigned int cpu, void *packed);
void on_eret(unsigned int cpu, void *packed);
void on_mmu_write(unsigned int cpu, void *packed);
void on_region_begin(unsigned int cpu, void *packed);
void on_region_end(unsigned int cpu, void *packed);
#if FT_HAS_REGISTERS
void on_zva(unsigned int cpu, void *packed);
#endif

/* exceptions.c */
#if FT_API >= 7
void on_discontinuity(unsigned int cpu, enum qemu_plugin_discon_type type,
		      uint64_t from, uint64_t to, void *udata);
#elif FT_HAS_DISCON
void on_discontinuity(qemu_plugin_id_t id, unsigned int cpu,
		      enum qemu_plugin_discon_type type, uint64_t from, uint64_t to);
#else
struct pmu;
void learn_vectors(struct pmu *pmu, uint64_t base);
void on_svc(unsigned int cpu, void *packed);
void watch_exceptions(struct qemu_plugin_tb *tb);
#endif

/* blocks.c */
void translate_block(struct qemu_plugin_tb *tb);

#endif
