// SPDX-License-Identifier: GPL-2.0
#include "access.h"

#include <string.h>

#include "cache.h"
#include "counts.h"
#include "hierarchy.h"
#include "translation.h"
#include "userdata.h"

/* Asks QEMU and caches the answer. Returns false if there is none. */
static bool translate_slow(struct pmu *pmu, struct pmu_cpu *c, enum privilege priv,
			   qemu_plugin_meminfo_t info, uint64_t va, uint64_t *pa)
{
	switch (translation_lookup(info, va, pa)) {
	case LOOKUP_DEVICE:
		c->counts.event[priv][EV_DEVICE]++;
		return false;
	case LOOKUP_FAILED:
		c->counts.event[priv][EV_UNTRANSLATED]++;
		return false;
	case LOOKUP_RAM:
		break;
	}
	translations_enter(&c->translations, va, *pa);
	pmu_lock(pmu);
	linear_note(&pmu->linear, va, *pa);
	if (pmu->has_l1i)
		code_pages_read(&pmu->code, generation(pmu), va, *pa);
	pmu_unlock(pmu);
	return true;
}

static void check_translation(const struct pmu *pmu, qemu_plugin_meminfo_t info,
			      uint64_t va, uint64_t pa, bool write)
{
	uint64_t slow_pa = 0;

	if (translation_lookup(info, va, &slow_pa) != LOOKUP_RAM || slow_pa != pa)
		pmu_die(pmu, "the translation cache has %#llx for %#llx, QEMU %#llx",
			(unsigned long long)pa, (unsigned long long)va,
			(unsigned long long)slow_pa);
	if (qemu_plugin_mem_is_store(info) != write)
		pmu_die(pmu, "an access to %#llx was taken for a %s",
			(unsigned long long)va, write ? "store" : "load");
}

/* Whether an access crosses into the next line. */
static bool straddles(const struct pmu *pmu, qemu_plugin_meminfo_t info,
		      uint64_t va)
{
	uint64_t left = pmu->line_mask + 1 - (va & pmu->line_mask);

	/* No access is longer than 16 bytes. */
	return left < 16 && left < UINT64_C(1) << qemu_plugin_mem_size_shift(info);
}

/* The part in the next line, which may lie in the next page. */
static void access_end(struct pmu *pmu, unsigned int cpu, enum privilege priv,
		       qemu_plugin_meminfo_t info, uint64_t va, bool write)
{
	struct pmu_cpu *c = &pmu->cpu[cpu];
	const struct cache *l1d = pmu->caches.cpu[cpu].at[LEVEL_L1D];
	uint64_t last = va + (UINT64_C(1) << qemu_plugin_mem_size_shift(info)) - 1;
	uint64_t pa;

	/* This CPU's own line may be longer than the shortest. */
	if (cache_line(l1d, va) == cache_line(l1d, last))
		return;
	if (!translations_find(&c->translations, generation(pmu), last, &pa) &&
	    !translate_slow(pmu, c, priv, info, last, &pa))
		return;
	pmu_lock(pmu);
	hierarchy_data(&pmu->caches, cpu, pa, write, priv);
	pmu_unlock(pmu);
}

static void remember_line(struct pmu *pmu, unsigned int cpu, uint64_t va, uint64_t pa)
{
	const struct cache *l1d = pmu->caches.cpu[cpu].at[LEVEL_L1D];
	struct recent_lines *recent = &pmu->recent[cpu];
	unsigned int i = (va >> pmu->line_shift) % NR_RECENT_LINES;

	if (l1d->policy != CACHE_LRU || pmu->options.check)
		return;
	if (recent->generation != pmu->cpu[cpu].translations.generation) {
		recent_lines_drop(recent);
		recent->generation = pmu->cpu[cpu].translations.generation;
	}
	recent->line[i].start = va & ~pmu->line_mask;
	recent->line[i].word = cache_line(l1d, pa) << 1 | CACHE_DIRTY;
	recent->line[i].set = cache_set(l1d, cache_line(l1d, pa));
}

/* Takes the arguments of its caller unchanged, so that the call is a jump. */
static __attribute__((noinline))
void model_access(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t va,
		  void *udata, bool write)
{
	struct pmu *pmu = userdata_context(udata);
	enum privilege priv = userdata_number(udata) & 1;
	struct pmu_cpu *c = &pmu->cpu[cpu];
	uint64_t pa;

	if (!translations_find(&c->translations, generation(pmu), va, &pa) &&
	    !translate_slow(pmu, c, priv, info, va, &pa))
		return;
	if (pmu->options.check)
		check_translation(pmu, info, va, pa, write);
	pmu_lock(pmu);
	hierarchy_data(&pmu->caches, cpu, pa, write, priv);
	remember_line(pmu, cpu, va, pa);
	pmu_unlock(pmu);
	if (straddles(pmu, info, va))
		access_end(pmu, cpu, priv, info, va, write);
}

/*
 * @udata: the last place in a line where an access that does not cross into the next
 * can begin, and in bit 0 the privilege. @alone: the guest has one CPU.
 */
static inline void data_access(unsigned int cpu, qemu_plugin_meminfo_t info,
			       uint64_t va, void *udata, bool write, bool alone)
{
	struct pmu *pmu = userdata_context(udata);
	unsigned int packed = userdata_number(udata);
	struct recent_lines *recent = &pmu->recent[alone ? 0 : cpu];
	unsigned int i = (va >> recent->shift) % NR_RECENT_LINES;

	if (va - recent->line[i].start <= packed >> 1 &&
	    (alone || recent->generation == generation(pmu))) {
		/* Another CPU may take the line now; either order is right. */
		uint64_t word = __atomic_load_n(recent->line[i].set, __ATOMIC_RELAXED);

		/* A store into a clean line makes it dirty: left to the model. */
		if ((write ? word : word | CACHE_DIRTY) == recent->line[i].word) {
			recent->hits[va / 8 % NR_HIT_COUNTERS][packed & 1]++;
			return;
		}
	}
	model_access(cpu, info, va, udata, write);
}

/* A callback for each kind of access that an instruction is known to make. */
#define ACCESS_CALLBACK(name, write, alone)						\
	static void name(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t va,	\
			 void *udata)							\
	{										\
		data_access(cpu, info, va, udata, write, alone);			\
	}

ACCESS_CALLBACK(on_load, false, false)
ACCESS_CALLBACK(on_load_alone, false, true)
ACCESS_CALLBACK(on_store, true, false)
ACCESS_CALLBACK(on_store_alone, true, true)
ACCESS_CALLBACK(on_load_or_store, qemu_plugin_mem_is_store(info), false)

/* The last place in a line where an access of @size can begin, if its number has room. */
static unsigned int last_place(const struct pmu *pmu, unsigned int size)
{
	uint64_t last = pmu->line_mask + 1 - size;

	return last < USERDATA_NUMBERS / 2 ? last : USERDATA_NUMBERS / 2 - 1;
}

void access_watch(struct pmu *pmu, struct qemu_plugin_insn *insn,
		  enum insn_kind kind, uint32_t op, enum privilege priv)
{
	qemu_plugin_vcpu_mem_cb_t cb = on_load_or_store;

	if (!pmu->has_l1d)
		return;
	if (kind == INSN_LOAD)
		cb = pmu->nr_cpus == 1 ? on_load_alone : on_load;
	else if (kind == INSN_STORE)
		cb = pmu->nr_cpus == 1 ? on_store_alone : on_store;
	qemu_plugin_register_vcpu_mem_cb(insn, cb, QEMU_PLUGIN_CB_NO_REGS,
					 QEMU_PLUGIN_MEM_RW,
					 userdata(pmu, last_place(pmu, insn_access_limit(op)) << 1 |
						       priv));
}

/* The guest of on_fetch(): with an instruction's address, udata is full. */
static struct pmu *fetching;

void access_init(struct pmu *pmu)
{
	fetching = pmu;
}

static void remember_fetch(struct pmu *pmu, unsigned int cpu, uint64_t host, uint64_t pa)
{
	const struct cache *l1i = pmu->caches.cpu[cpu].at[LEVEL_L1I];
	struct recent_fetches *recent = &pmu->fetched[cpu];
	unsigned int i = (host >> pmu->line_shift) % NR_RECENT_FETCHES;

	if (l1i->policy != CACHE_LRU || pmu->options.check)
		return;
	recent->line[i].start = host & ~pmu->line_mask;
	recent->line[i].word = cache_line(l1i, pa) << 1;
	recent->line[i].set = cache_set(l1i, cache_line(l1i, pa));
}

static __attribute__((noinline))
void model_fetch(struct pmu *pmu, unsigned int cpu, uint64_t host, enum privilege priv)
{
	uint64_t pa;

	pmu_lock(pmu);
	if (code_pages_place(&pmu->code, host, &pa)) {
		hierarchy_fetch(&pmu->caches, cpu, pa, priv);
		remember_fetch(pmu, cpu, host, pa);
	} else {
		pmu->cpu[cpu].counts.event[priv][EV_FETCH_UNPLACED]++;
	}
	pmu_unlock(pmu);
}

/* @at: the instruction's address in QEMU's memory; bit 0 is the privilege. */
static void on_fetch(unsigned int cpu, void *at)
{
	struct pmu *pmu = fetching;
	uint64_t host = (uintptr_t)at & ~(uintptr_t)1;
	enum privilege priv = (uintptr_t)at & 1;
	struct recent_fetches *recent = &pmu->fetched[cpu];
	unsigned int i = (host >> pmu->line_shift) % NR_RECENT_FETCHES;

	if (host - recent->line[i].start <= pmu->line_mask &&
	    *recent->line[i].set == recent->line[i].word)
		recent->hits[priv]++;
	else
		model_fetch(pmu, cpu, host, priv);
}

/*
 * One access of the L1I for every line that a block's instructions are in: a
 * call before the first instruction of each line.
 */
void access_watch_fetch(struct pmu *pmu, struct qemu_plugin_insn *insn,
			uint64_t *last_line, enum privilege priv)
{
	uint64_t host = (uintptr_t)qemu_plugin_insn_haddr(insn);
	uint64_t va = qemu_plugin_insn_vaddr(insn);
	uint64_t line = va & ~pmu->line_mask;

	if (!pmu->has_l1i || line == *last_line)
		return;
	*last_line = line;
	pmu_lock(pmu);
	code_pages_executed(&pmu->code, generation(pmu), va, host);
#if FT_HAS_TRANSLATE
	uint64_t pa;

	if (qemu_plugin_translate_vaddr(va, &pa))
		code_pages_read(&pmu->code, generation(pmu), va, pa);
#endif
	pmu_unlock(pmu);
	qemu_plugin_register_vcpu_insn_exec_cb(insn, on_fetch, QEMU_PLUGIN_CB_NO_REGS,
					       (void *)(uintptr_t)(host | priv));
}
